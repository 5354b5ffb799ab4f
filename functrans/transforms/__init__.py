"""The interpreters. One file, one interpreter: evaluate, stage, jvp, linearize, transpose, batch."""
