"""What the controllers of a platform share: Kubernetes, CloudWatch's PromQL, the table, the freeze switch."""
