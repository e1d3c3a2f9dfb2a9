"""The stacks of a platform whose containers run on Amazon ECS."""
