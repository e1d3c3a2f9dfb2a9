"""Streaming jobs that a deployment gives another size."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from inference_blueprints.operate.changes.findings import Finding
from inference_blueprints.operate.changes.platform_change import PlatformChange
from inference_blueprints.operate.check_results import CheckResult
from inference_catalog.cloudformation_types import value_at

CHECK = "streaming jobs"
_APPLICATION = "AWS::KinesisAnalyticsV2::Application"
_SIZE = "ApplicationConfiguration.FlinkApplicationConfiguration.ParallelismConfiguration"


def resized_jobs(change: PlatformChange) -> Iterator[Finding]:
    """Tell which jobs restart with more or fewer KPUs: a new release of this library may size them anew.

    Source: Managed Service for Apache Flink Developer Guide, "Application scaling": an update of the
    parallelism restarts the job from a snapshot.
    """
    for stack, logical_id, old, new in change.changed_resources():
        if new["Type"] != _APPLICATION:
            continue
        before, after = _kpus(old["Properties"]), _kpus(new["Properties"])
        if None in (before, after) or before == after:
            continue
        name = new["Properties"].get("ApplicationName", logical_id)
        message = f"{stack}: {name} restarts from a snapshot with {after} KPUs instead of {before}"
        yield CheckResult(CHECK, "warning", message)


def _kpus(properties: Mapping[str, Any]) -> int | None:
    """Return the KPUs at the start of a job; None if AWS chooses them."""
    size = value_at(properties, _SIZE) or {}
    subtasks, per_kpu = size.get("Parallelism"), size.get("ParallelismPerKPU")
    if not isinstance(subtasks, int) or not isinstance(per_kpu, int):
        return None
    return math.ceil(subtasks / per_kpu)
