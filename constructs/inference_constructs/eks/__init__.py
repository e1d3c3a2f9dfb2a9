"""The EKS cluster, its system nodes, and access to it from other stacks."""
