"""Accelerated nodes: Karpenter's rights and its pools."""
