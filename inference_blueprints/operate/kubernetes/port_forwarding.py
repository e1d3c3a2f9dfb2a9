"""Forwards a local port to a pod through the API server."""

from __future__ import annotations

import os
import re
import select
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from inference_blueprints.operate.kubernetes.kubectl import KubectlFailed

_LOOPBACK = "127.0.0.1"
_OPEN = re.compile(rf"Forwarding from {re.escape(_LOOPBACK)}:(\d+) ->")
#: Maximum time in seconds for kubectl to open the port.
OPENING_SECONDS = 30.0
_READ_BYTES = 4096


class Starter(Protocol):
    """The part of kubectl that is needed here."""

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start kubectl with arguments."""


@contextmanager
def forward_port(kubectl: Starter, namespace: str, pod: str, port: int) -> Iterator[str]:
    """Forward a free port of the loopback interface to a pod.

    port: TCP port of the pod.
    Yields: Address such as ``http://127.0.0.1:40123``.
    Raises KubectlFailed if the port does not open, with kubectl's message.
    """
    target = ("--namespace", namespace, f"pod/{pod}", f":{port}")
    with kubectl.start("port-forward", "--address", _LOOPBACK, *target) as process:
        try:
            yield f"http://{_LOOPBACK}:{_local_port(process)}"
        finally:
            process.terminate()


def _local_port(process: subprocess.Popen[str]) -> str:
    """Read kubectl's output until it names the port."""
    assert process.stdout is not None  # noqa: S101 - it was started with a pipe
    said = ""
    deadline = time.monotonic() + OPENING_SECONDS
    while (left := deadline - time.monotonic()) > 0:
        if not select.select([process.stdout], [], [], left)[0]:
            break
        # Bypasses the stream's buffer, which would hide lines from `select`.
        piece = os.read(process.stdout.fileno(), _READ_BYTES)
        if not piece:
            raise KubectlFailed(said.strip() or "kubectl port-forward ended without output")
        said += piece.decode(errors="replace")
        if found := _OPEN.search(said):
            return found[1]
    raise KubectlFailed(f"the port was not opened within {OPENING_SECONDS:.0f} s: {said.strip()}")
