"""Measures and simulates what a plan can serve: requests, replays, searches and their statistics."""
