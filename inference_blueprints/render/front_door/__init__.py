"""The front door as Envoy's configuration: listeners, clusters, and what is logged."""
