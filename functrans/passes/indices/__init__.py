"""What is known of the integers of a program: their ranges, and the sums that indices are."""
