"""The VPC, its endpoints, and the models' load balancer."""
