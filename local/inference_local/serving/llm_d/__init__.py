"""Stand-ins for the parts of llm-d that no package registry offers: its endpoint picker and its sidecar."""
