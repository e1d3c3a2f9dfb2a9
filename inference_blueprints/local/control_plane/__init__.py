"""A real Kubernetes control plane on loopback: its programs, its custom resource definitions, its life."""
