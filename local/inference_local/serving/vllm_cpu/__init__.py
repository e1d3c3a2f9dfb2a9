"""Real vLLM on the processors of this machine, in an environment of its own."""
