"""How a model is served: stack, frontends, parsers, caches, speculation."""
