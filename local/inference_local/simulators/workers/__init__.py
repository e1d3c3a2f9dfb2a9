"""Elastic workers: what their owners decide, and how long they take to start."""
