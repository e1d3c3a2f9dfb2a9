"""Replays a recorded trace, scaled to a workload, against an OpenAI endpoint."""
