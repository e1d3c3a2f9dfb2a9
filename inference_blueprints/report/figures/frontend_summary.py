"""Sizes of frontends."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FrontendSummary:
    """The frontends of a deployment on Dynamo.

    Parameters
    ----------
    model, deployment
        Their model and deployment.
    replicas, cpu, memory_mib
        Number of frontends, and vCPUs and memory in MiB of each.
    busy_cpu
        vCPUs that all of them use together at the peak: from a measurement.
    """

    model: str
    deployment: str
    replicas: int
    cpu: int
    memory_mib: int
    busy_cpu: float
