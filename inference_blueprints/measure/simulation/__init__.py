"""Dynamo's simulated engine: its input from a plan, and its offline replay."""
