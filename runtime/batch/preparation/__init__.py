"""From a job's input to shards: cut into segments, check each line, estimate, cut into shards, plan.

A segment is the most that is ever in memory, and a line that is too long is not even that.
"""
