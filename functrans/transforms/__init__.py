"""The interpreters. One file, one interpreter: evaluate, stage, jvp, linearize, transpose, batch.

`values` goes between the trees that users pass and the flat values that interpreters work on.
"""
