"""Batch: what runs jobs, from their submission to their results."""
