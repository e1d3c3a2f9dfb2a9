"""The configuration that serves a workload within its objectives at the least cost: simulated."""
