"""Prices: rates of instance types, and the cost of workers, tokens, caches and the signal store."""
