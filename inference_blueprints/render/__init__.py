"""Targets, which run a serving plan: one folder per target."""
