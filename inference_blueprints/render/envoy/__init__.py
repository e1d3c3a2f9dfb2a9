"""Parts of Envoy's configuration, shared by the front door and the sidecars that only it may reach."""
