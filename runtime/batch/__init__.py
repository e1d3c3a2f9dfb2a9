"""Batch: runs a team's file of requests by its deadline, on free capacity.

A job is checked and cut into shards before any money is spent. A shard is one message for a long-lived
worker. Results of a worker lie in S3, under keys that can be written only once. `batch.contracts` defines the
data that the parts exchange, and `batch.jobs` keeps the records. The other packages do not import each other.
"""
