"""The stacks of a platform on Amazon EKS."""
