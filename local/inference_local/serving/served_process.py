"""A process that serves models on this machine, as other commands reach it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ServedProcess:
    """A frontend or a worker process.

    Parameters
    ----------
    name
        Its name, such as ``decode 1 of qwen3-32b-main``.
    release, process
        Its deployment's release, and the name of its process in the plan.
    url
        URL of a port of 127.0.0.1 that leads to it. ``/metrics`` has its Prometheus metrics.
    health_path
        Path that answers 200 once it is ready.
    log_file
        File with its output.
    """

    name: str
    release: str
    process: str
    url: str
    health_path: str
    log_file: str
