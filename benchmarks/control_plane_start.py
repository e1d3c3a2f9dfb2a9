"""How long a real Kubernetes control plane takes to start, with its programs already built.

The measurement ends when an API server, a controller manager, a scheduler and KWOK work. `_definitions` also
includes every custom resource definition. The goal is the part that remains of a developer's 90 s for `make
test-cluster`.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.harness.figure import Figure
from inference_local.control_plane import definitions
from inference_local.control_plane.control_plane import ControlPlane

_ROUNDS = 3
_GOAL_SECONDS = 20.0


def measure() -> list[Figure]:
    """Take the measurement. The first start, which may build programs, does not count."""
    _start_seconds()
    plain, complete = zip(*(_start_seconds() for _ in range(_ROUNDS)), strict=True)
    return [
        Figure("control_plane_start", statistics.median(plain), "s", goal=_GOAL_SECONDS),
        Figure("control_plane_start_definitions", statistics.median(complete), "s"),
    ]


def _start_seconds() -> tuple[float, float]:
    with tempfile.TemporaryDirectory(prefix="control-plane-") as folder:
        begin = time.monotonic()
        with ControlPlane(Path(folder), report=_report) as plane:
            started = time.monotonic() - begin
            definitions.install(plane.kubectl, _report)
            return started, time.monotonic() - begin


def _report(line: str) -> None:
    sys.stderr.write(f"{line}\n")
