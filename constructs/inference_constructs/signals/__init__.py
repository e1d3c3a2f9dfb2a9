"""The signal store: a cache for reads at request time, and the history of all written values."""
