"""Load tests from inside a cluster: a Job of Kubernetes and its answers."""
