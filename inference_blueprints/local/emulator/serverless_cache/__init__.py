"""ElastiCache serverless on this machine: a real Valkey behind encryption and tokens of IAM."""
