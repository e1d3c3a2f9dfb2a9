"""Issues the certificates with which callers of models are known."""
