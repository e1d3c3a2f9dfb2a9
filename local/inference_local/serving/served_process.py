"""A process that serves models on this machine, as other commands reach it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ServedProcess:
    """A frontend or a worker process."""

    name: str
    """Its name, such as ``decode 1 of qwen3-32b-main``."""
    release: str
    """Its deployment's release."""
    process: str
    """The name of its process in the plan."""
    url: str
    """URL of a port of 127.0.0.1 that leads to it. ``/metrics`` has its Prometheus metrics."""
    health_path: str
    """Path that answers 200 once it is ready."""
    log_file: str
    """File with its output."""
