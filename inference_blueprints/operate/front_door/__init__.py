"""API keys and usage of the front door in an account."""
