"""The passes over the loop IR."""
