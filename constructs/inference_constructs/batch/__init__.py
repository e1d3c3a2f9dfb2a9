"""Batch: runs jobs from submission to results."""
