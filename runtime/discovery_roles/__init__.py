"""Keeps users and roles of the discovery store: each deployment writes only its own entries."""
