"""Computes the processes that serve a blueprint's models."""
