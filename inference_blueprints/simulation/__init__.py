"""Dynamo's simulated engine: what it reads of a plan, and its offline replay."""
