"""A fleet of GPUs with faults."""
