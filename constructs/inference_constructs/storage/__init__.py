"""Buckets, tables, and the job that mirrors weights."""
