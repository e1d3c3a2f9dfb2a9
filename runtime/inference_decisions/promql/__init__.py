"""Queries of CloudWatch in PromQL: for the command line, and for functions that watch a cluster."""
