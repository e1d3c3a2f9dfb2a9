"""Documents, messages and items that the functions and workers of batch exchange."""
