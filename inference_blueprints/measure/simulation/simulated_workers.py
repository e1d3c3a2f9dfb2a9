"""The workers of a deployment as input for the simulated engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import inference_catalog as catalog
from inference_blueprints.serving.performance.role_capacity import ProfileFinder, speeds
from inference_blueprints.serving.performance.transfer_time import transfer_bytes_per_second
from inference_blueprints.serving.resolved import ResolvedWorkers
from inference_blueprints.serving.types import EngineSettings, Process, Role
from inference_catalog import LatencyProfile


@dataclass(frozen=True, slots=True)
class SimulatedWorkers:
    """Workers of one role."""

    role: Role
    replicas: int
    settings: EngineSettings
    profile: LatencyProfile | None
    """Their latency profile. None if nothing was measured."""
    kv_bytes_per_token: int
    """KV cache per token on all devices of a worker together, in bytes."""
    transfer_bytes_per_second: float | None
    """Transfer rate of KV cache between the roles. None for aggregated workers."""


def simulated_workers(
    roles: Sequence[ResolvedWorkers],
    processes: Sequence[Process],
    profile_of: ProfileFinder | None = None,
) -> tuple[SimulatedWorkers, ...]:
    """Return the workers of a deployment.

    roles: Resolved workers of each role.
    processes: Planned processes, in the same order.
    profile_of: Returns the latency profile. By default, that of the catalogue.
    Raises ValueError if a process has no engine.
    """
    find = profile_of or catalog.latency_profile
    rate = transfer_bytes_per_second(*roles) if len(roles) > 1 else None
    return tuple(_workers(role, process, rate, find) for role, process in zip(roles, processes, strict=True))


def _workers(
    resolved: ResolvedWorkers, process: Process, rate: float | None, profile_of: ProfileFinder
) -> SimulatedWorkers:
    if process.engine is None:
        raise ValueError(f"{process.name}: a worker has no engine")
    return SimulatedWorkers(
        role=process.role,
        replicas=process.maximum,
        settings=process.engine,
        profile=speeds(resolved, profile_of),
        kv_bytes_per_token=round(resolved.shape.kv_bytes_per_token()),
        transfer_bytes_per_second=rate,
    )
