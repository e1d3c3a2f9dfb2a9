"""The front door on this machine: replicas of it, a load of its callers, and what came of it."""
