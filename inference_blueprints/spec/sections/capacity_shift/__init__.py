"""Capacity that moves between real time and batch."""
