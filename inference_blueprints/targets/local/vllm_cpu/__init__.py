"""Real vLLM on a CPU, with scaled-down models."""
