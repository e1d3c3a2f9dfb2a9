"""Accelerated nodes: Karpenter's permissions and its pools."""
