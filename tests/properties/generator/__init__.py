"""Random programs over everything that a program can contain, for all fuzzers."""
