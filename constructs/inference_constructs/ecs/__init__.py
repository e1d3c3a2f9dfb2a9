"""Workers that run as Amazon ECS tasks."""
