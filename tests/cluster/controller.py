"""Controllers of other projects on a control plane."""

from __future__ import annotations

import os
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from inference_local.control_plane.control_plane import LOOPBACK, ControlPlane
from inference_local.processes.child_processes import ProcessGroup


@contextmanager
def controller(
    control_plane: ControlPlane,
    name: str,
    command: Sequence[str | Path],
    health_port: int,
    *,
    health_path: str = "/readyz",
    **variables: str,
) -> Iterator[None]:
    """Run a controller, which works once the block is entered and is gone when it is left.

    Gone, because it would go on with the objects of the tests after it.
    """
    with ProcessGroup(grace_seconds=2) as processes:
        processes.start(
            name,
            command,
            environment={
                "HOME": str(control_plane.run_directory),
                "PATH": os.environ.get("PATH", os.defpath),
                "KUBECONFIG": str(control_plane.kubeconfig),
                **variables,
            },
            log_path=control_plane.log_path(name),
            working_directory=control_plane.run_directory,
        )

        def works() -> bool:
            control_plane.check()
            processes.check()
            return _is_ready(health_port, health_path)

        control_plane.kubectl.wait_until(works, name)
        yield


def _is_ready(port: int, path: str) -> bool:
    try:
        with urllib.request.urlopen(f"http://{LOOPBACK}:{port}{path}", timeout=2) as response:
            return bool(response.status == 200)
    except OSError:
        return False
