"""What the figures share: their type, measuring in turns, and writing results."""
