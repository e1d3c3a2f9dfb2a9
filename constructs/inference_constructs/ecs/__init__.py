"""Workers that run as tasks of Amazon ECS."""
