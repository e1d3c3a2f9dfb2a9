"""Models and their deployments."""
