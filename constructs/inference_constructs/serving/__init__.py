"""AWS resources of a served model: its route and its permissions."""
