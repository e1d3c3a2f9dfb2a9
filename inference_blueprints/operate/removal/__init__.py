"""Deletes a platform and finds billable resources that remain."""
