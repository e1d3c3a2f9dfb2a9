"""The sidecar of an entry point that admits known callers only, the same on every target."""
