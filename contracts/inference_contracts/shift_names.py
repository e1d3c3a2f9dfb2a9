"""The capacity shift: its names, and what it moves, one JSON document that ships with its function."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, field
from typing import Any, Final, Literal, Self

from inference_contracts.records import dataclass

#: What the capacity shift does with its decisions: only record them, or carry them out.
ShiftAction = Literal["observe", "shift"]
#: Margin above the forecast if the blueprint says nothing, in percent. The forecast itself is wide enough to
#: miss no more than half of what may be missed (docs/capacity-shift-decisions.md).
DEFAULT_SAFETY_PERCENT: Final = 0

#: Name of the function, as it appears in logs, metrics and alarms.
SHIFT_CONTROLLER: Final = "capacity-shift"

# --- Environment variables of the function, besides those of `operations_names`. ---

#: File with the `ShiftConfiguration`, a path from the folder of the code.
SHIFT_CONFIGURATION: Final = "SHIFT_CONFIGURATION"
#: Table of batch's records, in which batch reads its ceilings.
SHIFT_BATCH_TABLE: Final = "SHIFT_BATCH_TABLE"

# --- Entry of the table of `operations_names`: the state of the last decision. ---

SHIFT_ENTRY: Final = "shift#state"

# --- Metrics, in the namespace and with the dimensions of `operations_names`. ---

#: Decisions that another run at the same time took first.
SHIFTS_OVERTAKEN: Final = "ShiftsOvertaken"
#: Changes that were made, and changes that failed.
SHIFT_CHANGES: Final = "ShiftChanges"
SHIFT_FAILURES: Final = "ShiftFailures"
#: Deployments whose demand is not known, so that real time keeps all of their capacity.
SHIFT_UNMEASURED: Final = "ShiftUnmeasured"
#: Sum of the floors, in replicas.
SHIFT_FLOORS: Final = "ShiftFloors"
#: Sum of the places that batch may have.
SHIFT_BATCH_PLACES: Final = "ShiftBatchPlaces"

# --- Ceilings of batch: items of the table of its records. ---

#: Beginning of their identifiers. The function may write no other item of that table.
CEILING_PREFIX: Final = "ceiling#"
#: Field of the record: places that the model's jobs may have together.
CEILING_PLACES: Final = "places"
#: Field of the record: time of the decision, in seconds since 1970.
CEILING_AT: Final = "at"
#: Age from which a ceiling counts no longer. Then batch gets no more than a running job must have.
CEILING_SECONDS: Final = 600


def ceiling_identifier(model: str) -> str:
    """Return the identifier of a model's ceiling in the table of batch's records."""
    return f"{CEILING_PREFIX}{model}"


# --- What batch's deadlines need: items of the same table, with the same fields as ceilings. ---

#: Beginning of their identifiers. Batch's scheduler writes one per model with a ceiling each minute: the
#: places with which all of its jobs end in time. An item older than `CEILING_SECONDS` says nothing.
DEADLINES_PREFIX: Final = "deadlines#"


def deadlines_identifier(model: str) -> str:
    """Return the identifier of what a model's deadlines need, in the table of batch's records."""
    return f"{DEADLINES_PREFIX}{model}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShiftedWorkers:
    """The elastic workers of a role."""

    name: str
    """Name of their ScaledObject on EKS, and of their service on ECS."""
    namespace: str
    """Namespace of the ScaledObject. ECS has none."""
    release: str
    role: str
    """`release`, `role`: Labels of their series."""
    model: str
    pool: str
    """The pool whose nodes they use."""
    least: int
    most: int
    """`least`, `most`: Range of replicas in the blueprint."""
    capacity: float
    """Requests in flight that one worker carries within the objectives."""
    accelerators: int
    """Accelerators of one worker."""
    priority: int = 0
    """On a shared pool: who comes first, from 100 to 0."""
    handover_seconds: float | None = None
    """On a shared pool: time until a worker of another role has stopped and one of this role serves. None on
    others, where `reclaim_seconds` holds."""
    new_node_seconds: float | None = None
    """On a shared pool whose nodes come and go: the same time if a node has to start. None on others, and
    where one stated time holds for all."""
    batch_only: bool = False
    """Whether they serve batch alone, so that the shift sets their number itself."""
    tokens_per_accelerator_hour: float = 0.0
    """What an accelerator does for batch in this role, if they serve batch alone."""
    scale: str = ""
    """Group, version and plural of the object with their number, if the shift sets it itself, such as
    ``apps/v1/deployments``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedPool:
    """A pool that models share by the hour."""

    pool: str
    """Name of the pool."""
    accelerators: int
    """Accelerators that its elastic and lent workers may have together: all but those of fixed workers."""
    accelerators_per_node: int
    always: int | None = None
    """How many of these accelerators are on nodes that always run. None for all."""
    fixed: int = 0
    """Accelerators of workers whose number is fixed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShiftedQueue:
    """A pool with a queue for jobs."""

    pool: str
    """Name of the pool and of its ClusterQueue."""
    resource: str
    """Resource name of its accelerators."""
    accelerators: int
    """Accelerators that elastic workers and jobs may have together."""
    quota: int
    """Quota of the blueprint: what is left if all workers run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShiftConfiguration:
    """The part of a blueprint and its plan that the function needs."""

    action: ShiftAction
    """Whether decisions are carried out."""
    safety_percent: int
    """Margin above the forecast."""
    reclaim_seconds: int
    """Within this time lent replicas are back."""
    workers: tuple[ShiftedWorkers, ...]
    """Elastic workers."""
    queues: tuple[ShiftedQueue, ...]
    """Pools with a queue for jobs."""
    batch_places: Mapping[str, int]
    """Places of batch by model, if no interactive request needs the model."""
    shared_pools: tuple[SharedPool, ...] = ()
    """Pools that models share by the hour. On these the shift also sets ceilings."""
    batch_releases: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Releases that serve a queue by model, also those of fixed workers. A model that is missing serves batch
    with all of its releases."""
    fixed_places: Mapping[str, int] = field(default_factory=dict)
    """Places of batch that it always has beside those in `batch_places`, by model: those of workers whose
    number is fixed, where others serve batch only at times."""

    def shares(self, workers: ShiftedWorkers) -> bool:
        """Return whether workers are on a pool that models share by the hour."""
        return any(each.pool == workers.pool for each in self.shared_pools)

    def serves_batch(self, workers: ShiftedWorkers) -> bool:
        """Return whether a queue uses the release of workers."""
        return workers.release in self.batch_releases.get(workers.model, (workers.release,))

    def batch_share(self, workers: ShiftedWorkers) -> int:
        """Return the places of batch that belong to workers, if nothing else uses them.

        The places of a model are divided among its releases that serve a queue, by what they carry. Each role
        of a release has all of its release's places: a request needs both.
        """
        places = self.batch_places.get(workers.model, 0)
        if not places or not self.serves_batch(workers):
            return 0
        carried: dict[str, float] = {}
        for each in self.workers:
            if each.model == workers.model and self.serves_batch(each):
                carried[each.release] = max(carried.get(each.release, 0.0), each.capacity * each.most)
        # Rounded down, so that all together never exceed the model's.
        return int(places * carried[workers.release] / sum(carried.values()))

    @property
    def lent_models(self) -> tuple[str, ...]:
        """Models with workers that serve batch alone, in order."""
        return tuple(sorted({each.model for each in self.workers if each.batch_only}))

    def as_json(self) -> str:
        """Return the document."""
        values = asdict(self)
        if not self.fixed_places:
            del values["fixed_places"]  # documents without it are as they were
        return json.dumps(values, indent=1, sort_keys=True) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the configuration of what `as_json` returned."""
        found: dict[str, Any] = json.loads(text)
        return cls(
            **{
                **found,
                "workers": tuple(ShiftedWorkers(**each) for each in found["workers"]),
                "queues": tuple(ShiftedQueue(**each) for each in found["queues"]),
                "shared_pools": tuple(SharedPool(**each) for each in found.get("shared_pools", ())),
                "batch_releases": {
                    model: tuple(names) for model, names in found.get("batch_releases", {}).items()
                },
            }
        )
