"""The real llama-server on the processors of this machine, with random weights."""
