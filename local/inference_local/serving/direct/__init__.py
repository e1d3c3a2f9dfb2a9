"""The stack without a router on this machine."""
