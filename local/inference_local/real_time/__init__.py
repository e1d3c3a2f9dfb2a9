"""A Java ad server that calls a model with a deadline, and what its pages got."""
