"""The recording rules of a blueprint: its plan, its objectives, and prices that the catalogue knows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from string import Template
from typing import Final

import yaml
from pydantic import BaseModel, ConfigDict

import inference_catalog as catalog
from inference_blueprints.render.monitoring.hardware_alarms import hardware_alarms
from inference_blueprints.render.monitoring.recording_rules import NodePrice, RecordingRule, rules
from inference_blueprints.serving.types import ServingPlan
from inference_blueprints.spec.types import GpuHealth, Pool, Purchase, Spec

# Series of each worker, with which GPU health compares workers with their peers.

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


#: Karpenter's capacity types. https://karpenter.sh/v1.15/concepts/nodepools/#capacity-type
_ON_DEMAND: Final = "on-demand"
_RESERVED: Final = "reserved"


def platform_rules(platform: str, plan: ServingPlan, spec: Spec) -> tuple[RecordingRule, ...]:
    """Return every recording rule of a platform.

    platform: `metadata.name`.
    spec: The blueprint's section.
    """
    objectives = {model.name: model.objectives for model in spec.models}
    prices = node_prices(spec.pools, spec.environment.region)
    return (
        *rules(platform, plan, objectives=objectives, prices=prices),
        *health_rules(platform, plan, pools=spec.pools, gpu_health=spec.gpu_health),
    )


def health_rules(
    platform: str, plan: ServingPlan, *, pools: Sequence[Pool], gpu_health: GpuHealth | None
) -> tuple[RecordingRule, ...]:
    """Return the recording rules that GPU health needs; none without it.

    platform: `metadata.name`.
    pools, gpu_health: Sections of the blueprint.
    """
    if gpu_health is None:
        return ()
    faults = tuple(rule for alarm in hardware_alarms(pools) for rule in alarm.rules(platform))
    return (*faults, *(worker_rules(platform, plan) if gpu_health.slow_gpus else ()))


def node_prices(pools: Sequence[Pool], region: str) -> tuple[NodePrice, ...]:
    """Return the on-demand prices of the nodes that pools may start, those that ``plan`` shows.

    A reservation costs as much as on demand (Amazon EC2 User Guide, "Capacity Reservation pricing and
    billing"). Spot instances and Capacity Blocks have no known price, nor do types that the catalogue lacks.

    pools: Section of the blueprint.
    region: Region of the platform. If the catalogue has no prices of it, they are those of the reference
        region.
    """
    known = catalog.prices(region).usd_per_hour
    return tuple(
        NodePrice(pool=pool.name, instance_type=each.name, purchase=purchase, usd_per_hour=known[each.name])
        for pool in pools
        if (purchase := _at_on_demand_rate(pool.purchase)) is not None
        for each in pool.types
        if each.name in known
    )


def _at_on_demand_rate(purchase: Purchase) -> str | None:
    """Return the capacity type of a pool's nodes that cost the on-demand price, if it has such nodes."""
    if purchase.reservation is not None:
        return _RESERVED
    fallback = purchase.spot is not None and purchase.spot.on_demand_fallback
    return _ON_DEMAND if purchase.on_demand is not None or fallback else None
