"""Copies what a deployment brings to the object that running programs watch."""
