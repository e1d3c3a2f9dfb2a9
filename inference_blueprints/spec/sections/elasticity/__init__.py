"""Elastic workers."""
