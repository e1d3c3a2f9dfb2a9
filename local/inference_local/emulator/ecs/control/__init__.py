"""Decisions of the control plane of ECS, as functions and state without input or output."""
