"""Computes the nodes, IP addresses and service quotas that a plan needs."""
