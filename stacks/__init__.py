"""Deployment units. Each turns the blueprint and the serving plan into properties of constructs."""
