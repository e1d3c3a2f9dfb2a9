"""What the nodes of a deployed platform cost, by model and team."""
