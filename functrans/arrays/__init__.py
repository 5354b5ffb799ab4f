"""The arrays that users hold and pass: `Array`, the kinds of arguments, and errors for writes to immutable arrays."""

from . import methods as methods  # installs the operators and methods of Array
