"""What users pass in and get back: pytrees of arrays, and arguments checked and converted for interpreters."""
