"""Hooks on cotangents: how they are attached, and how they run."""
