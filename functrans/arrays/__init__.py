"""The arrays that users hold and pass: Array, what arguments may be, and what immutable arrays refuse."""
