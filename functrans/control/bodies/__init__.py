"""Bodies of loops, branches and calls: how they are built, kept, transformed and run."""
