"""One module a command of `python -m benchmarks`, and the parts of the larger ones."""
