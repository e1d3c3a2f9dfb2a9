"""The store of signals."""
