"""Jobs that nobody sends a request for: a manifest that is written to a bucket, and a schedule."""
