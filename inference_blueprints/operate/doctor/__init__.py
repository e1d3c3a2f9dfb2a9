"""Looks at an account before a blueprint is deployed there: what would break it, and what mends that."""
