"""Locks the versions of a blueprint's software and downloads third-party charts."""
