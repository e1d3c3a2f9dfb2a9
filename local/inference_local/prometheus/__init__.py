"""A real Prometheus 3 on loopback: scrapes and answers queries, or evaluates series at times of their own."""
