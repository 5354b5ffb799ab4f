"""Loops as LLVM."""
