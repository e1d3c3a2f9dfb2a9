"""The cluster, its nodes for the platform itself, and access to it from other stacks."""
