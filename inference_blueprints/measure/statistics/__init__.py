"""Statistics of measured requests: percentiles, throughput and price."""
