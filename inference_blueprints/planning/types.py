"""What `blueprints plan` tells: pools, processes, memory and price, as data."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PoolSummary:
    """One pool: what it may hold and what the plan takes of it.

    Parameters
    ----------
    name
        The pool's name.
    instance_types
        EC2 instance types it may hold.
    purchase
        How its nodes are paid for, in the blueprint's word: ``onDemand`` or ``spot``.
    reckoned_instance_type
        The type that the used nodes are reckoned with: the cheapest that holds every worker. None when no
        worker names the pool.
    accelerator
        Kind of device, such as ``l40s``; None when it has none.
    nodes_used, nodes_max
        Nodes that the plan's workers fill, and the most that the blueprint allows.
    accelerators_used, accelerators_max
        Devices that workers hold, and devices at ``nodes_max`` nodes of the largest type.
    usd_per_hour_used, usd_per_hour_max
        On demand, for the used nodes and for ``nodes_max`` nodes of the dearest type; None when unknown.
    """

    name: str
    instance_types: tuple[str, ...]
    purchase: str
    reckoned_instance_type: str | None
    accelerator: str | None
    nodes_used: int
    nodes_max: int
    accelerators_used: int
    accelerators_max: int
    usd_per_hour_used: float | None
    usd_per_hour_max: float | None


@dataclass(frozen=True, slots=True)
class ProcessSummary:
    """One kind of process.

    Parameters
    ----------
    model, deployment, name
        What it belongs to and its name there.
    replicas
        How many run.
    accelerators
        Devices that each holds.
    pool
        Pool whose nodes it runs on; None for the system nodes.
    image
        Container image.
    """

    model: str
    deployment: str
    name: str
    replicas: int
    accelerators: int
    pool: str | None
    image: str


@dataclass(frozen=True, slots=True)
class MemorySummary:
    """How one worker fills the memory of each of its devices.

    Parameters
    ----------
    model, deployment
        Whose worker.
    accelerator_bytes
        Memory of one device.
    weights_bytes, activation_bytes, reserved_bytes, kv_cache_bytes
        Its parts on one device, in bytes; what the engine is not allowed to use is in none of them.
    kv_cache_tokens
        Tokens that the worker's KV cache holds.
    concurrent_requests
        Requests of the stated mean length that run at once: bounded by the KV cache and by the sequences that
        the engine is set to.
    """

    model: str
    deployment: str
    accelerator_bytes: int
    weights_bytes: int
    activation_bytes: int
    reserved_bytes: int
    kv_cache_bytes: int
    kv_cache_tokens: int
    concurrent_requests: int


@dataclass(frozen=True, slots=True)
class Prices:
    """Where the prices come from and what they leave out.

    Parameters
    ----------
    region, date, source
        Of the price table.
    blueprint_region
        Where the platform is deployed.
    not_included
        What is billed beside the pools' nodes.
    """

    region: str
    date: str
    source: str
    blueprint_region: str
    not_included: tuple[str, ...]

    @property
    def note(self) -> str:
        """One sentence on what the prices are and whether they hold where the platform is deployed."""
        facts = f"On-demand prices of {self.region}, {self.date}, from {self.source}."
        if self.region == self.blueprint_region:
            return facts
        return f"{facts} The blueprint deploys to {self.blueprint_region}, where prices differ."


@dataclass(frozen=True, slots=True)
class Totals:
    """The pools together.

    Parameters
    ----------
    nodes_used, nodes_max, accelerators_used, accelerators_max
        Sums over the pools.
    usd_per_hour_used, usd_per_hour_max
        Sums over the pools whose price is known.
    without_used, without_max
        Pools whose price is unknown, left out of the respective sum.
    """

    nodes_used: int
    nodes_max: int
    accelerators_used: int
    accelerators_max: int
    usd_per_hour_used: float
    usd_per_hour_max: float
    without_used: tuple[str, ...]
    without_max: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PlanSummary:
    """All that `blueprints plan` prints.

    Parameters
    ----------
    name, region
        Of the blueprint.
    pools, processes, memory
        In the blueprint's order.
    totals
        The pools together.
    prices
        Where the prices come from.
    """

    name: str
    region: str
    pools: tuple[PoolSummary, ...]
    processes: tuple[ProcessSummary, ...]
    memory: tuple[MemorySummary, ...]
    totals: Totals
    prices: Prices
