"""What the shift knows of a cell: what runs now, what it decided before, and its settings."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, Self

from inference_contracts.shift_names import (
    DEFAULT_SAFETY_PERCENT,
    SharedPool,
    ShiftAction,
    ShiftConfiguration,
    ShiftedWorkers,
)

# What the shift decided before. It is one item of the table.


@dataclass(frozen=True, slots=True, kw_only=True)
class DeploymentState:
    """What was decided about a deployment."""

    floor: int
    """Floor of its replicas."""
    lower_since: float | None = None
    """Since when a lower floor would have sufficed, in seconds since the epoch. None if it would not."""
    lent: float = 0.0
    """Share of the deployment's capacity that batch had, from 0 to 1."""
    ceiling: int | None = None
    """Largest number of its replicas, on a shared pool."""
    grown_at: float | None = None
    """When a role that serves batch alone last got replicas, in seconds since the epoch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShiftState:
    """What the last decision left."""

    decided_at: float = 0.0
    """Time of the last decision, in seconds since the epoch."""
    deployments: Mapping[str, DeploymentState] = field(default_factory=dict)
    """State of each deployment by name."""

    def as_item(self) -> dict[str, Any]:
        """Return the state as JSON values."""
        return asdict(self)

    @classmethod
    def from_item(cls, item: Mapping[str, Any]) -> Self:
        """Return the state of what `as_item` returned. Numbers may be decimals, as DynamoDB returns them."""
        return cls(
            decided_at=float(item["decided_at"]),
            deployments={
                name: DeploymentState(
                    floor=int(each["floor"]),
                    lower_since=None if each["lower_since"] is None else float(each["lower_since"]),
                    lent=float(each["lent"]),
                    # Records of earlier versions do not have these.
                    ceiling=None if each.get("ceiling") is None else int(each["ceiling"]),
                    grown_at=None if each.get("grown_at") is None else float(each["grown_at"]),
                )
                for name, each in item["deployments"].items()
            },
        )


# The section `capacityShift` of a blueprint, and the limits that go with it.

#: ``frozen``: people stopped the shift, and nothing changes until they thaw it. ``unknown``: the switch
#: cannot be read. Then nothing more is lent, but real time gets back what it needs.
FreezeSwitch = Literal["thawed", "frozen", "unknown"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShiftSettings:
    """How the shift decides."""

    action: ShiftAction = "observe"
    """Whether decisions are carried out, or only recorded."""
    freeze: FreezeSwitch = "thawed"
    safety_percent: float = DEFAULT_SAFETY_PERCENT
    """Margin above the upper forecast, in percent."""
    reclaim_seconds: float = 600.0
    """Within this time lent replicas serve real time again."""
    admission_seconds: float = 60.0
    """Within this time batch has left a deployment that it shares with real time."""
    stale_seconds: float = 180.0
    """Age of the newest measurement from which metrics count as missing."""
    lower_after_seconds: float = 600.0
    """How long a lower floor must have sufficed before the floor goes down."""
    lower_percent_per_minute: float = 10.0
    """Most of the present floor that it goes down in a minute, in percent. It is at least one replica."""
    lend_percent_per_minute: float = 25.0
    """Most of a deployment's capacity by which the share of batch grows in a minute, in percent. It shrinks
    at once."""
    learn_seconds: float = 86400.0
    """Least history of a deployment with which anything is lent."""

    @classmethod
    def of(cls, configuration: ShiftConfiguration, freeze: FreezeSwitch = "thawed") -> Self:
        """Return the settings of a platform.

        configuration: What its shift moves, and how.
        """
        return cls(
            action=configuration.action,
            freeze=freeze,
            safety_percent=configuration.safety_percent,
            reclaim_seconds=configuration.reclaim_seconds,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class DeploymentView:
    """One elastic role of a deployment: one ScaledObject."""

    name: str
    """Name of the ScaledObject. It is unique in the cell."""
    pool: str
    """Name of the pool whose nodes it uses."""
    minimum: int
    maximum: int
    """`minimum`, `maximum`: Range of replicas in the blueprint."""
    replicas: int
    """Replicas that its owner wants now."""
    ready: int
    """Replicas that serve now."""
    capacity: float
    """Demand that one replica serves within its objectives, in the unit of the history."""
    in_use: float | None = None
    """Real-time demand that is being served right now, in the same unit. None if it is not known: then the
    newest bin of the history stands for it."""
    accelerators: int = 1
    """Accelerators of one replica."""
    batch_places: int = 0
    """Places of batch in this deployment when all of `maximum` replicas serve nothing else. Zero if batch
    does not share it."""
    priority: int = 0
    """On a shared pool: who gets accelerators first, from 100 to 0."""
    handover_seconds: float | None = None
    """On a shared pool: time until a replica of another role has drained and one of this role serves. None
    for `reclaim_seconds` of the settings."""
    new_node_seconds: float | None = None
    """On a shared pool: the same time if a node has to start. None if no node ever has to, or the other time
    has it."""
    batch_only: bool = False
    """Whether it serves batch alone. Then it has no history, and the shift sets the number itself."""
    deadline_replicas: int | None = 0
    """Replicas that the deadlines of its jobs need now, if it serves batch alone. It may exceed the maximum.
    None if that is not known: then it keeps what it has, as far as real time leaves it."""
    tokens_per_accelerator_hour: float = 0.0
    """What an accelerator does for batch in this role. Among roles that serve batch alone, the larger one
    comes first once all deadlines are met."""

    @classmethod
    def of(
        cls,
        workers: ShiftedWorkers,
        configuration: ShiftConfiguration,
        *,
        replicas: int,
        ready: int,
        needed_places: int | None,
    ) -> Self:
        """Return the view of workers.

        configuration: What the shift moves.
        replicas, ready: Replicas that are wanted, and that serve.
        needed_places: Places that the deadlines of their model need. None if that is not known.
        """
        due: int | None = 0
        if workers.batch_only:
            places = configuration.batch_places.get(workers.model, 0)
            known = needed_places is not None and places > 0
            left = max(0, (needed_places or 0) - configuration.fixed_places.get(workers.model, 0))
            # All workers of the model that move have these places together.
            due = math.ceil(left * workers.most / places) if known else None
        return cls(
            name=workers.name,
            pool=workers.pool,
            minimum=workers.least,
            maximum=workers.most,
            replicas=replicas,
            ready=ready,
            capacity=workers.capacity,
            accelerators=workers.accelerators,
            batch_places=configuration.batch_share(workers),
            priority=workers.priority,
            handover_seconds=workers.handover_seconds,
            new_node_seconds=workers.new_node_seconds,
            batch_only=workers.batch_only,
            deadline_replicas=due,
            tokens_per_accelerator_hour=workers.tokens_per_accelerator_hour,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolView:
    """A pool that deployments and batch share."""

    name: str
    """Its name in the blueprint."""
    accelerators: int
    """Accelerators that deployments and batch may have together."""
    shared: bool = False
    """Whether models share it by the hour. Then ceilings are decided, too."""
    accelerators_per_node: int = 0
    """Accelerators of a node of a shared pool: a replica uses those of one node, or whole nodes. The last
    node has what is left. Zero if a replica fits anywhere."""
    always: int | None = None
    """Accelerators of a shared pool whose nodes always run. None for all. The others have a node while a
    replica uses it."""

    @classmethod
    def of(cls, pool: SharedPool) -> Self:
        """Return the view of a shared pool."""
        return cls(
            name=pool.pool,
            accelerators=pool.accelerators,
            shared=True,
            accelerators_per_node=pool.accelerators_per_node,
            always=pool.always,
        )


@dataclass(frozen=True, slots=True)
class CellView:
    """All deployments that the shift decides about, and their pools."""

    deployments: tuple[DeploymentView, ...]
    """Elastic roles, each with a name of its own."""
    pools: tuple[PoolView, ...] = ()
    """Pools from which capacity is lent. A deployment may use one that is not among them: then only its floor
    and its batch places are decided."""
