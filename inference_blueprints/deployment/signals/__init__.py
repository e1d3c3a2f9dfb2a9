"""Commands about the signal store: where it is, and what is in it."""
