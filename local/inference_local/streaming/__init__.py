"""Streaming jobs on this machine: Kafka, Flink, a replayed stream of clicks, and what came of it."""
