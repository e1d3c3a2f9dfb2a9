"""Looks at a platform after it was deployed: whether all of it is there, and whether its models answer."""
