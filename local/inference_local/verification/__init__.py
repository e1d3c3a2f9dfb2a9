"""Runs the checks of `verify` against the processes of a local run."""
