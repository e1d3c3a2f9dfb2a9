"""Runs the rendered tasks of a platform on ECS: its stacks are deployed, and its tasks' commands run."""
