"""New arrays."""
