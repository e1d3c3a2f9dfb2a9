"""What the VPC is to tasks: addresses, names and a load balancer."""
