"""Real vLLM on the processors of this machine, with random weights."""
