"""The arrays that users hold and pass: `Array`, kinds of arguments, errors for writes, the casts of autocast."""

from . import methods as methods  # installs the operators and methods of Array
