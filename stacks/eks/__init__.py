"""Stacks of a platform on Amazon EKS."""
