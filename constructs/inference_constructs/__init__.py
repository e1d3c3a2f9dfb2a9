"""Reusable constructs, one package per capability. `stacks` combines them into deployment units."""
