"""How much the cluster's Prometheus holds, and what it needs for that.

Both servers scrape every serving pod, so each holds all series. Most of its memory is that of series and of
their newest samples, which are in memory for up to three hours
(https://prometheus.io/docs/prometheus/latest/storage/). The figures were measured on a real Prometheus 3 with
the recorded answers of vLLM's workers: `docs/observability.md`, "How large Prometheus is".
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from inference_blueprints.serving.types import ServingPlan
from inference_blueprints.spec.types import Blueprint
from inference_catalog.catalogue import shipped
from inference_contracts.errors import Finding
from inference_contracts.records import dataclass
from inference_contracts.units import MIB_PER_GIB

#: Largest number of series: their memory fits on a system node, `node_facts.INSTANCE_TYPE`, with 16 GiB.
MAX_SERIES: Final = 3_000_000
#: Memory and disk of a series. Memory is measured, with garbage of Go, and for churn: pods that were replaced
#: within three hours are still in memory. On disk are 8 hours of samples, and their write-ahead log.
_MEMORY_BYTES: Final = 4096
_DISK_BYTES: Final = 8000
#: What it needs without series, and the smallest request.
_BASE_MIB: Final = 256
_LEAST_MIB: Final = 1024
_LEAST_DISK_GIB: Final = 8
_STEP_MIB: Final = 256
#: Fewest frontends of a deployment whose number the plan decides.
_FRONTENDS: Final = 2


@dataclass(frozen=True, slots=True)
class PrometheusSize:
    """What a server of Prometheus requests."""

    series: int
    """Series that it holds at most."""

    @property
    def memory_mib(self) -> int:
        """Requested memory. The limit is twice as much."""
        needed = _BASE_MIB + self.series * _MEMORY_BYTES / 2**20
        return max(_LEAST_MIB, math.ceil(needed / _STEP_MIB) * _STEP_MIB)

    @property
    def disk_gib(self) -> int:
        """Size of its disk. Three quarters are for samples."""
        return max(_LEAST_DISK_GIB, math.ceil(self.series * _DISK_BYTES / 2**30))

    @property
    def quantities(self) -> Mapping[str, str]:
        """Its sizes as the chart's values have them."""
        return {
            "memory": _quantity(self.memory_mib),
            "memory_limit": _quantity(2 * self.memory_mib),
            "disk": f"{self.disk_gib}Gi",
            "retention": f"{self.disk_gib * 3 // 4}GB",
        }


def _quantity(mib: int) -> str:
    return f"{mib}Mi" if mib % MIB_PER_GIB else f"{mib // MIB_PER_GIB}Gi"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScrapedPods:
    """The pods of a deployment that are scraped."""

    workers: int
    frontends: int
    """`workers`, `frontends`: Their largest numbers."""
    accelerators: int
    """GPUs of all workers."""


def scraped_series(pods: Iterable[ScrapedPods]) -> int:
    """Return the series of deployments after dropping. Workers count as those of vLLM, whatever their engine.

    pods: The pods of each deployment. Each frontend has series of each worker of its own.
    """
    counted = shipped().serving_metrics.series
    return sum(
        each.workers * counted["vllm_worker"]
        + each.frontends * (counted["dynamo_frontend"] + each.workers * counted["dynamo_frontend_per_worker"])
        + each.accelerators * counted["dcgm_gpu"]
        for each in pods
    )


def prometheus_size(plan: ServingPlan) -> PrometheusSize:
    """Return the size for a plan whose elastic processes are at their largest numbers."""
    deployments = [each for model in plan.models for each in model.deployments]
    return PrometheusSize(
        scraped_series(
            ScrapedPods(
                workers=sum(each.maximum for each in deployment.workers),
                frontends=sum(each.maximum for each in deployment.processes if not each.is_worker),
                accelerators=deployment.accelerator_count,
            )
            for deployment in deployments
        )
    )


def series_findings(blueprint: Blueprint) -> Iterator[Finding]:
    """Yield a finding if an observed platform has more series than a Prometheus holds.

    blueprint: A blueprint that may have invalid values.
    """
    if blueprint.spec.observability is None:
        return
    workers, series = 0, 0
    for model in blueprint.spec.models:
        frontend = model.frontend.replicas if model.frontend else None
        for deployment in model.deployments:
            sets = deployment.workers.values()
            each = sum(one.maximum for one in sets)
            devices = sum(one.maximum * one.accelerators for one in sets)
            workers += each
            series += scraped_series(
                [ScrapedPods(workers=each, frontends=frontend or _FRONTENDS, accelerators=devices)]
            )
    if series > MAX_SERIES:
        size = PrometheusSize(series)
        yield Finding(
            ("spec", "observability"),
            f"got up to {workers:,} workers, whose metrics are {series:,} series and need"
            f" {size.memory_mib / MIB_PER_GIB:.0f} GiB of memory in Prometheus; a cluster has at most"
            f" {MAX_SERIES:,}; divide the workers among several blueprints, as `plan --fleet` says",
        )
