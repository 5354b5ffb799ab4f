"""What is known of the indices of a loop: sums of iteration numbers, ranges, what is overwritten later."""
