"""Prevents the emulator from using a Docker daemon.

If ministack finds a daemon, it starts a k3s container for each EKS cluster and removes containers. A run must
behave the same on every machine and must not touch the user's containers. `kubernetes.ClusterBackend`
replaces
Kubernetes. Without a daemon, ministack marks a cluster ACTIVE at once.
"""

from ministack import app
from ministack.services import eks


def apply() -> None:
    """Apply the patch: the emulator finds no Docker daemon."""
    app._docker_socket_present = lambda: False
    app._reaper_docker_client = lambda: None
    app._stop_docker_containers = lambda *_: None
    eks._get_docker = lambda: None
