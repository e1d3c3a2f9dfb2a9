"""Asks every model on a schedule."""
