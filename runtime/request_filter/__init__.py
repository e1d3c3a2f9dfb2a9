"""The filter in front of an entry point: it checks requests, and passes answers on as they come."""
