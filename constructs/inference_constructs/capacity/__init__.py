"""Accelerated nodes: Karpenter's permissions, pools of nodes, and baked images."""
