"""Turns a job's input into shards: cut into segments, check each line, estimate, cut into shards, plan.

Memory holds at most one segment. A line above the size limit is never held whole.
"""
