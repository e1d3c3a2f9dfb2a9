"""Batch on this machine: real workers beside the emulated API, and a job that is counted line by line."""
