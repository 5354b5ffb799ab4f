"""The transformations as users call them: pytrees in, pytrees out, and errors that name the argument."""
