"""Connects to the Kubernetes API server of a platform."""
