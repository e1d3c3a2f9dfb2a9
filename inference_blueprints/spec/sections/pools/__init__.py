"""Pools of nodes."""
