"""Jobs of a platform's batch API: submitted, watched, and their results read."""
