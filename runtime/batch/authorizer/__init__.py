"""Identifies the owner of a token before API Gateway forwards a request."""
