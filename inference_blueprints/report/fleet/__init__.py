"""A simulated fleet of GPUs: what breaks in it, what its metrics show, and what GPU health does about it."""
