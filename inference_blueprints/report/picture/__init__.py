"""Draws the architecture of a blueprint as SVG."""
