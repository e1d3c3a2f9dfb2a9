"""Sends the requests of a benchmark and prints their results, on a laptop or in a cluster."""
