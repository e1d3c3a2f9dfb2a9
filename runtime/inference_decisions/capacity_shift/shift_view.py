"""What runs now in a cell, as far as the shift needs to know it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class DeploymentView:
    """One elastic role of a deployment: one ScaledObject.

    Parameters
    ----------
    name
        Name of the ScaledObject. It is unique in the cell.
    pool
        Name of the pool whose nodes it uses.
    least, most
        Range of replicas in the blueprint.
    replicas
        Replicas that its owner wants now.
    ready
        Replicas that serve now.
    capacity
        Demand that one replica serves within its objectives, in the unit of the history.
    in_use
        Real-time demand that is being served right now, in the same unit. None if it is not known: then the
        newest bin of the history stands for it.
    accelerators
        Accelerators of one replica.
    batch_places
        Places of batch in this deployment when all of `most` replicas serve nothing else. Zero if batch does
        not share it.
    """

    name: str
    pool: str
    least: int
    most: int
    replicas: int
    ready: int
    capacity: float
    in_use: float | None = None
    accelerators: int = 1
    batch_places: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolView:
    """A pool that deployments and batch share.

    Parameters
    ----------
    name
        Its name in the blueprint.
    accelerators
        Accelerators that deployments and batch may have together.
    """

    name: str
    accelerators: int


@dataclass(frozen=True, slots=True)
class CellView:
    """All deployments that the shift decides about, and their pools.

    Parameters
    ----------
    deployments
        Elastic roles, each with a name of its own.
    pools
        Pools from which capacity is lent. A deployment may use one that is not among them: then only its
        floor and its batch places are decided.
    """

    deployments: tuple[DeploymentView, ...]
    pools: tuple[PoolView, ...] = ()
