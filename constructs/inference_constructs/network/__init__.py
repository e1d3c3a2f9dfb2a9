"""The VPC, its endpoints, and the way to the models."""
