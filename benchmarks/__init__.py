"""Headline figures: one file each, found and run by ``python -m benchmarks``."""
