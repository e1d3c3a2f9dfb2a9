"""Other gateways, each at one release, installed once into the cache folder and never into the project."""
