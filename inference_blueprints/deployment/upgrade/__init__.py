"""Brings a platform to what this release of the library runs, and to the next Kubernetes."""
