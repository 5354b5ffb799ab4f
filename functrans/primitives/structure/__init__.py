"""Create, move and repeat elements; the only arithmetic is sums over broadcast axes."""
