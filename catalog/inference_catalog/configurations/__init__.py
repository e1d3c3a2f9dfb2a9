"""Reads a published ``config.json``: a model's layers, the size of its weights, an entry of the catalogue."""
