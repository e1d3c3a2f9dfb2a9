"""What a blueprint costs, whether it fits, and what it looks like."""
