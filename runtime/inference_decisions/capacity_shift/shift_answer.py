"""The answer of the shift: what it decided, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from inference_contracts.shift_names import ShiftConfiguration
from inference_decisions.capacity_shift.shift_view import ShiftState

ShiftCode = Literal[
    "forecast",
    "present_demand",
    "least",
    "most",
    "in_use",
    "no_history",
    "metrics_missing",
    "waits_to_lower",
    "lowers_slowly",
    "lends_slowly",
    "nothing_to_lend",
    "observe",
    "frozen",
    "freeze_unknown",
    "clock_back",
    "first_decision",
    "pool_too_small",
    "gives_way",
    "batch_rest",
    "deadlines_unknown",
]


@dataclass(frozen=True, slots=True)
class ShiftReason:
    """A reason of a decision."""

    code: ShiftCode
    """One of `ShiftCode`, for programs."""
    text: str
    """The reason in words, for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeploymentForecast:
    """What the decision expected of a deployment, in the unit of its history."""

    level: float
    """Present level of the demand."""
    soon: float
    """Demand that capacity covers until batch has left a shared deployment, with its margin."""
    later: float
    """Demand that capacity covers until lent replicas are back, with its margin."""
    season: float | None
    """Largest demand within the reclaim time in the same hours of earlier days. None if none is known, and
    on a shared pool."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeploymentDecision:
    """What was decided about a deployment."""

    name: str
    """Name of the ScaledObject."""
    floor: int
    """Smallest number of its replicas from now on, within the range of the blueprint."""
    batch_places: int
    """Places that batch may have in it from now on."""
    lent: float
    """Share of the deployment's capacity at `most` replicas that these places are, from 0 to 1."""
    reasons: tuple[ShiftReason, ...]
    """Why. At least one."""
    forecast: DeploymentForecast | None
    """What was expected. None without metrics or history."""
    ceiling: int | None = None
    """Largest number of its replicas from now on, on a shared pool: the ceilings of all its roles fit the
    pool. None elsewhere: the maximum of the blueprint."""
    drain_order: int | None = None
    """On a shared pool: roles are changed in this order, from 0. Those that give up replicas come first, and
    those that serve batch alone before real time. None elsewhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolDecision:
    """What batch may have of a pool."""

    name: str
    batch_accelerators: int
    """Accelerators that batch's own workers may have: the nominal quota of its ClusterQueue. The rest is kept
    for real time. On a shared pool: those of its roles that serve batch alone."""
    reasons: tuple[ShiftReason, ...]
    """Why. At least one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShiftDecision:
    """What was decided about a cell."""

    decided_at: float
    """Time of the decision, in seconds since the epoch."""
    carried_out: bool
    """Whether anything may be changed. If not, the decision is only recorded."""
    deployments: tuple[DeploymentDecision, ...]
    """One decision per deployment, in the order of the view."""
    pools: tuple[PoolDecision, ...]
    """One decision per pool, in the order of the view."""
    state: ShiftState
    """What to keep for the next decision."""

    def ceilings(self, configuration: ShiftConfiguration) -> Mapping[str, int]:
        """Return the places that batch may have, by model. Workers without a decision have none.

        configuration: What the shift moves.
        """
        decided = {each.name: each.batch_places for each in self.deployments}
        releases: dict[tuple[str, str], int] = {}
        for workers in configuration.workers:
            if workers.model in configuration.batch_places:
                key = workers.model, workers.release
                places = decided.get(workers.name, 0)
                releases[key] = min(places, releases.get(key, places))
        found = dict(configuration.fixed_places)
        for (model, _), places in releases.items():
            found[model] = found.get(model, 0) + places
        return found

    def as_record(self) -> dict[str, Any]:
        """Return the audit record as JSON values, without the state."""
        record = asdict(self)
        del record["state"]
        return record
