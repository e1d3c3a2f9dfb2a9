"""Compares a deployed platform with what would be deployed: what AWS refuses, and what would lose data."""
