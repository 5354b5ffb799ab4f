"""Elements by index: read, written, looked for."""
