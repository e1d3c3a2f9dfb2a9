"""Clients for the user's AWS account."""
