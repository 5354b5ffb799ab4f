"""Elements made, moved and repeated; nothing computed but sums over broadcast axes."""
