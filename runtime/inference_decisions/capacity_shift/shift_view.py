"""What runs now in a cell, as far as the shift needs to know it."""

from __future__ import annotations

from dataclasses import dataclass


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


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolView:
    """A pool that deployments and batch share."""

    name: str
    """Its name in the blueprint."""
    accelerators: int
    """Accelerators that deployments and batch may have together."""


@dataclass(frozen=True, slots=True)
class CellView:
    """All deployments that the shift decides about, and their pools."""

    deployments: tuple[DeploymentView, ...]
    """Elastic roles, each with a name of its own."""
    pools: tuple[PoolView, ...] = ()
    """Pools from which capacity is lent. A deployment may use one that is not among them: then only its floor
    and its batch places are decided."""
