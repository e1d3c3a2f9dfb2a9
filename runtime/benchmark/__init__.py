"""Sends the requests of a benchmark and prints what became of them, on a laptop and in a cluster alike."""
