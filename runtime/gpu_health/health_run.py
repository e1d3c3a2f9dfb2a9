"""What each run begins with: the freeze switch, the newest observation, and the acts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from aws_lambda_powertools import Logger

from gpu_health.case_progress import CaseProgress
from gpu_health.case_store import CaseStore
from gpu_health.cluster_repairs import ClusterRepairs
from gpu_health.health_platform import HealthPlatform
from gpu_health.host_repairs import HostRepairs
from inference_contracts.operations_names import HEALTH_SERVICE

_logger = Logger(service=HEALTH_SERVICE, child=True)


def begin(platform: HealthPlatform, clock: Callable[[], float]) -> CaseProgress:
    """Return the cases of a run.

    platform: The cell, and how its GPUs are watched.
    clock: Returns the time, in seconds since the epoch.
    Raises OperationsError if the table does not answer.
    """
    freeze = platform.cell.freeze("health")
    if freeze.frozen:
        _logger.warning("GPU health is frozen", extra={"reason": freeze.reason})
    store = CaseStore(platform.cell.table)
    return CaseProgress(
        store=store,
        repairs=(HostRepairs if platform.cell.ecs_cluster else ClusterRepairs)(platform, store, clock),
        settings=replace(platform.settings, frozen=freeze.frozen),
        observation=store.read_observation(clock()),
    )
