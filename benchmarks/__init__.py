"""Benchmarks, one file each. ``python -m benchmarks`` finds and runs them."""
