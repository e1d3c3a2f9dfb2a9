"""The front door: one address for all models, with keys, budgets and usage."""
