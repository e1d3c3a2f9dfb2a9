"""Scaled-down models with random weights, one shape for each architecture of the catalogue."""
