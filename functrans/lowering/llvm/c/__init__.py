"""What is written in C: the pool of threads, calls from Python, the memory of results; and its LLVM text."""
