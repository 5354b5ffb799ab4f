"""Mathematical functions in kernels."""
