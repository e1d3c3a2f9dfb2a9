"""Reusable constructs by capability; the deployment units that put them together are in `stacks`."""
