"""What users hand in, and get back: trees of arrays, arguments checked and made values of interpreters."""
