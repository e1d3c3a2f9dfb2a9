"""Bakes snapshots with container images in the account, and compares them with the plan."""
