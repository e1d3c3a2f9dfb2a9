"""Submits jobs without an API request: from a manifest in a bucket, or from a schedule."""
