"""Streaming jobs on this machine: Kafka, Flink, a replayed stream of clicks, and a count of what came of it."""
