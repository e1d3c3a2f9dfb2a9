"""Charts from registries and of this library."""
