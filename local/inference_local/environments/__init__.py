"""Environments of their own, installed once from lock files: NVIDIA Dynamo, and vLLM on processors."""
