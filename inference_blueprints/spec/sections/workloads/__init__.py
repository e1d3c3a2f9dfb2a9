"""Requests that come in: in real time, from queues and from streaming jobs."""
