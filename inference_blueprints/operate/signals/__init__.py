"""Finds and reads the signal store."""
