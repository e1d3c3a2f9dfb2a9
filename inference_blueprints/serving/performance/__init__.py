"""Computes the capacity of workers from latency profiles and network bandwidth."""
