"""Reads what a release of an engine accepts from its wheel, without installing or running the engine."""
