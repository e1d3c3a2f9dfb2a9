"""Batch: a team's file of requests, finished by its deadline on whatever capacity is free.

A job is checked and cut into shards before anything is spent; a shard is one message for a long-lived worker;
what a worker has finished lies in S3 under keys that nobody can write twice. `batch.contracts` says what the
parts of it hand to one another, `batch.jobs` keeps the records; the rest imports nothing of each other.
"""
