"""Which jobs run, and on how much of a model's capacity each."""
