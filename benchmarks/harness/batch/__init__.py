"""What the figures of batch share: an endpoint, a worker's surroundings, and who else asks its lines."""
