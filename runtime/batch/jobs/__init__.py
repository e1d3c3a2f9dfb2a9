"""Jobs: their records, who may submit them, and how they are submitted by API, manifest or schedule."""
