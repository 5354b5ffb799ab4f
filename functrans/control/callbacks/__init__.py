"""Calls of users' Python functions from inside a program."""
