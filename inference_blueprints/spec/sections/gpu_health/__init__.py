"""Broken and slow GPUs."""
