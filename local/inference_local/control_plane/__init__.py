"""A real Kubernetes control plane on loopback: builds it, starts it, and adds resource definitions."""
