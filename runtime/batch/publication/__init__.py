"""Publishes a job's answers as signals, each under the custom_id of its line, and keeps their history."""
