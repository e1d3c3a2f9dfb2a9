"""Decides which jobs run, and how much of a model's capacity each job gets."""
