"""Streaming jobs: their load, their size, and the configuration that they read."""
