"""Upgrades a platform to the versions of this release of the library, and to the next Kubernetes version."""
