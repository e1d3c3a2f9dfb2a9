"""Memory, disk, caches and lengths of requests, estimated from the model and its workload."""
