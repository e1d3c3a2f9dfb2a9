"""Weights as one file of GGUF."""
