"""Series of each worker, with which GPU health compares workers with their peers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from string import Template
from typing import Final

import yaml
from pydantic import BaseModel, ConfigDict

from inference_blueprints.render.monitoring.recording_rules import RecordingRule
from inference_blueprints.serving.types import ServingPlan

_FILE = Path(__file__).parent / "data/worker_recordings.yaml"
#: Labels of the series: those by which workers are grouped, and where the worker is.
WORKER_LABELS: Final = ("platform", "model", "release", "role", "pool", "pod", "node")


class WorkerRecording(BaseModel):
    """A row of ``worker_recordings.yaml``, which explains its fields."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    unit: str
    says: str
    promql: Mapping[str, str]
    source: str


@cache
def worker_recordings() -> tuple[WorkerRecording, ...]:
    """Return every row."""
    return tuple(WorkerRecording.model_validate(row) for row in yaml.safe_load(_FILE.read_text("utf-8")))


def worker_rules(platform: str, plan: ServingPlan) -> Iterator[RecordingRule]:
    """Yield a rule for each series and engine.

    platform: `metadata.name`.
    """
    deployments = [each for model in plan.models for each in model.deployments]
    workers: Counter[str] = Counter()
    for each in deployments:
        workers[each.framework] += sum(process.replicas for process in each.workers)
    selector, by = f'platform="{platform}",role!="frontend"', ", ".join(WORKER_LABELS)
    for recording in worker_recordings():
        for engine, count in workers.items():
            if engine in recording.promql:
                promql = Template(recording.promql[engine]).substitute(labels=selector, by=by)
                yield RecordingRule(recording.name, promql, {}, count)
