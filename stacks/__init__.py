"""Deployment units: each takes the blueprint and the serving plan and hands properties to constructs."""
