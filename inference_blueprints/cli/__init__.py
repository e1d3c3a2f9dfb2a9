"""The command `blueprints`."""
