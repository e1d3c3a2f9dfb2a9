"""From the blueprint to the processes that serve its models."""
