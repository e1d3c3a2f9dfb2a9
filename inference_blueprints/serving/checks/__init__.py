"""Checks whether the workers of a blueprint would start and serve."""
