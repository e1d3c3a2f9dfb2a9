"""Runs the containers of tasks as processes of this machine."""
