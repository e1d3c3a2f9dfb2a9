"""Shares the nodes of a pool among its workers."""
