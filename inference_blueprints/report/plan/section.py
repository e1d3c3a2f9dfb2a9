"""What a section of the plan is, and what sections are computed from.

Each file in `sections/` holds the figures of a part of the plan, how they follow from the blueprint and the
serving plan, and their tables.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from functools import cached_property
from itertools import groupby
from typing import Any, Generic, TypeVar

import inference_catalog as catalog
from inference_blueprints.report.pricing.rates import CustomRates, prices_for
from inference_blueprints.report.sizing.batch_day import BatchDay, batch_days
from inference_blueprints.report.sizing.node_packing import PackedNode, cheapest_placement, workers_of_pool
from inference_blueprints.report.tables import TextTable
from inference_blueprints.serving.resolved import ResolvedWorkers, resolve
from inference_blueprints.serving.streaming import stream_load
from inference_blueprints.serving.types import Process, ServingPlan
from inference_blueprints.serving.way_capacity import ModelCapacity, way_capacities
from inference_blueprints.spec.types import Blueprint, LatencyKind, next_percentile
from inference_catalog import ServicePrices, Support
from inference_contracts.records import dataclass

FiguresT_co = TypeVar("FiguresT_co", covariant=True)


class Label(StrEnum):
    """What a line of the short plan is about, in reading order."""

    MODELS = "models"
    CARRIES = "carries"
    LONGEST = "longest"
    PRICE = "price"
    COST = "cost"
    LIMITS = "limits"
    OBJECTIVES = "objectives"
    ELASTIC = "elastic"
    NEW_NODE = "new node"
    CACHE = "KV cache"
    FRONT_DOOR = "front door"
    BATCH = "batch"
    STREAMING = "streaming"
    SIGNALS = "signals"
    OPERATION = "operation"
    WARNINGS = "warnings"


#: A part of a line of the short plan. A warning is a whole sentence.
ShortLine = tuple[Label, str]


@dataclass(frozen=True, slots=True)
class PlanSection(Generic[FiguresT_co]):
    """A section of the plan."""

    key: str
    """Its key in JSON."""
    summarise: Callable[[PlanBasis], FiguresT_co]
    """Computes its figures: a record, several of them, or None."""
    in_short: Callable[[PlanSummary], Iterable[ShortLine]]
    """Returns what it says in the short plan: `in_tables_only` if another section says it."""
    tables: tuple[Callable[[PlanSummary], TextTable], ...] = ()
    """Return its tables. A plan shows those that have rows."""
    computed: tuple[str, ...] = ()
    """Properties of each record that JSON shows after the record's fields."""


@dataclass(frozen=True, slots=True)
class PlanSummary:
    """All results of `blueprints plan`: ``summary[SECTION]`` returns the figures of a section."""

    name: str
    region: str
    """`name`, `region`: Those of the platform."""
    support: Support
    """The features that the blueprint uses, with their support levels."""
    figures: Mapping[str, Any]
    """Figures of each section, by its key. A figure without a source is None, never guessed."""

    def __getitem__(self, section: PlanSection[FiguresT_co]) -> FiguresT_co:
        figures: FiguresT_co = self.figures[section.key]
        return figures


def in_tables_only(_summary: PlanSummary) -> Iterable[ShortLine]:
    """Return nothing for the short plan."""
    return ()


@dataclass(frozen=True, slots=True)
class RecordedReplay:
    """A simulated replay of a deployment as its blueprint is written, in a file beside it."""

    content: str
    """Digest of what was replayed, as `replayed_content` returns it."""
    date: str
    """Day of the replay, such as ``2026-11-29``."""
    trace: str
    """Name of the trace; ``workload`` for requests as the blueprint states them."""
    latencies_ms: Mapping[LatencyKind, Mapping[float, float]]
    """Milliseconds by latency and percentile, of the slowest of its replays."""

    def percentile_ms(self, kind: LatencyKind, percentile: float) -> float:
        """Return a percentile of a latency, in milliseconds."""
        return next_percentile(self.latencies_ms[kind], percentile)


class PlanBasis:
    """What the sections of a plan are computed from: ``basis[SECTION]`` returns the figures of another one.

    plan: The serving plan computed from the blueprint.
    rates: The user's own rates. Without them, only on-demand prices are known.
    replays: Recorded replays by `deployment_name`. Without them, nothing was replayed.
    """

    def __init__(
        self,
        blueprint: Blueprint,
        plan: ServingPlan,
        rates: CustomRates | None = None,
        replays: Mapping[str, RecordedReplay] | None = None,
    ) -> None:
        self.replays = replays or {}
        self.blueprint = blueprint
        self.spec = blueprint.spec
        self.plan = plan
        self.prices = prices_for(self.spec.environment.region, rates)
        self._figures: dict[str, Any] = {}

    def __getitem__(self, section: PlanSection[FiguresT_co]) -> FiguresT_co:
        if section.key not in self._figures:
            self._figures[section.key] = section.summarise(self)
        figures: FiguresT_co = self._figures[section.key]
        return figures

    @cached_property
    def services(self) -> ServicePrices:
        """Prices of services in the platform's region."""
        return catalog.service_prices(self.spec.environment.region)

    @cached_property
    def roles(self) -> tuple[tuple[ResolvedWorkers, Process], ...]:
        """The workers of each role of each deployment with their process, in the blueprint's order."""
        return tuple(
            pair
            for model_index, model in enumerate(self.plan.models)
            for deployment_index, deployment in enumerate(model.deployments)
            for pair in zip(
                resolve(self.blueprint, model_index, deployment_index), deployment.workers, strict=True
            )
        )

    @cached_property
    def workers(self) -> tuple[ResolvedWorkers, ...]:
        """The workers of each role of each deployment."""
        return tuple(resolved for resolved, _ in self.roles)

    @cached_property
    def deployments(self) -> Mapping[str, tuple[ResolvedWorkers, ...]]:
        """The workers of every role of a deployment, by ``model/deployment``."""
        groups = (tuple(group) for _, group in groupby(self.workers, key=lambda each: each.release))
        return {f"{group[0].model.name}/{group[0].deployment.name}": group for group in groups}

    @cached_property
    def placed(self) -> Mapping[str, list[PackedNode]]:
        """The nodes of each pool, with the workers on them."""
        return {
            pool.name: cheapest_placement(workers_of_pool(self.plan, pool.name), self.prices.types_of(pool))
            for pool in self.spec.pools
        }

    @cached_property
    def capacities(self) -> Mapping[str, ModelCapacity]:
        """What the deployments of each queue can do of its requests, by the queue's name."""
        queues = self.spec.batch.queues if self.spec.batch else []
        return way_capacities(self.spec, queues, self.workers)

    @cached_property
    def streaming_calls(self) -> Mapping[str, float]:
        """Requests per second that each model gets from all streaming jobs."""
        calls: dict[str, float] = defaultdict(float)
        for job in self.spec.streaming:
            calls[job.model] += stream_load(job).calls_per_second
        return calls

    @cached_property
    def batch_days(self) -> tuple[BatchDay, ...]:
        """The days of the queues that declare a load, in the blueprint's order."""
        spec = self.spec
        if spec.batch is None:
            return ()
        return batch_days(spec, spec.batch)
