"""Events to signals."""
