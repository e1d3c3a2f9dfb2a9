"""Targets: what runs a serving plan, one folder each."""
