"""Decisions of the controllers as functions that call no service. They ship with the Lambda functions."""
