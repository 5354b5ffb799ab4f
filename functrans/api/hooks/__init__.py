"""Hooks on cotangents and blocks with hooks, as users register them."""
