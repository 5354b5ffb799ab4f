"""What reverse mode keeps of a loop or a call, and what it computes again."""
