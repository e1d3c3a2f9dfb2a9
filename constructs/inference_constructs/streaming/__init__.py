"""Streaming jobs: a Kafka cluster with its topics, and the applications that turn events into signals."""
