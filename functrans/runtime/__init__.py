"""What the process needs besides mathematics: options, context, pickling, tracebacks, optional libraries."""
