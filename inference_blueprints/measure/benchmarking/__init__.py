"""Asks a live endpoint as a recorded or stated workload does, and compares it with its offline replay."""
