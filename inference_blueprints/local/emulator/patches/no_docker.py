"""Keeps the emulator away from a Docker daemon, should the machine have one.

ministack starts a k3s container for each EKS cluster, and reaps containers, whenever it finds a daemon. A run
must do the same everywhere and must leave the user's containers alone; Kubernetes is the business of
`kubernetes.ClusterBackend`. Without a daemon ministack marks a cluster ACTIVE at once.
"""

from ministack import app
from ministack.services import eks


def apply() -> None:
    """Make the emulator believe that there is no Docker daemon."""
    app._docker_socket_present = lambda: False
    app._reaper_docker_client = lambda: None
    app._stop_docker_containers = lambda *_: None
    eks._get_docker = lambda: None
