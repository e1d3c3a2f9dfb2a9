"""Beside the Prometheus of a platform on ECS: tells it its targets, and publishes loads to CloudWatch."""
