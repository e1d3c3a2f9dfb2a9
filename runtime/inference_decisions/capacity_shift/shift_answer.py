"""The answer of the shift: what it decided, and why."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from inference_decisions.capacity_shift.shift_state import ShiftState

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
]


@dataclass(frozen=True, slots=True)
class ShiftReason:
    """A reason of a decision.

    Parameters
    ----------
    code
        One of `ShiftCode`, for programs.
    text
        The reason in words, for people.
    """

    code: ShiftCode
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeploymentForecast:
    """What the decision expected of a deployment, in the unit of its history.

    Parameters
    ----------
    level
        Present level of the demand.
    soon
        Demand that capacity covers until batch has left a shared deployment, with its margin.
    later
        Demand that capacity covers until lent replicas are back, with its margin.
    season
        Largest demand within the reclaim time in the same hours of earlier days. None if none is known.
    """

    level: float
    soon: float
    later: float
    season: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeploymentDecision:
    """What was decided about a deployment.

    Parameters
    ----------
    name
        Name of the ScaledObject.
    floor
        Smallest number of its replicas from now on, within the range of the blueprint.
    batch_places
        Places that batch may have in it from now on.
    lent
        Share of the deployment's capacity at `most` replicas that these places are, from 0 to 1.
    reasons
        Why. At least one.
    forecast
        What was expected. None without metrics or history.
    """

    name: str
    floor: int
    batch_places: int
    lent: float
    reasons: tuple[ShiftReason, ...]
    forecast: DeploymentForecast | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolDecision:
    """What batch may have of a pool.

    Parameters
    ----------
    name
        Name of the pool.
    batch_accelerators
        Accelerators that batch's own workers may have: the nominal quota of its ClusterQueue. The rest is
        kept for real time.
    reasons
        Why. At least one.
    """

    name: str
    batch_accelerators: int
    reasons: tuple[ShiftReason, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShiftDecision:
    """What was decided about a cell.

    Parameters
    ----------
    decided_at
        Time of the decision, in seconds since the epoch.
    carried_out
        Whether anything may be changed. If not, the decision is only recorded.
    deployments
        One decision per deployment, in the order of the view.
    pools
        One decision per pool, in the order of the view.
    state
        What to keep for the next decision.
    """

    decided_at: float
    carried_out: bool
    deployments: tuple[DeploymentDecision, ...]
    pools: tuple[PoolDecision, ...]
    state: ShiftState

    def as_record(self) -> dict[str, Any]:
        """Return the audit record as JSON values, without the state."""
        record = asdict(self)
        del record["state"]
        return record
