"""What `blueprints plan` tells: pools, processes, memory and price, as data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


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
        node is used.
    accelerator
        Kind of device, such as ``l40s``; None when it has none.
    nodes_used, nodes_max
        Nodes that the plan's workers fill or that are kept, and the most that the blueprint allows.
    accelerators_used, accelerators_max
        Devices that workers hold, and devices at ``nodes_max`` nodes of the largest type.
    usd_per_hour_used, usd_per_hour_max
        As the pool pays, for the used nodes and for ``nodes_max`` nodes of the dearest type; None when
        unknown.
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
    accelerators, nodes
        Devices that each holds, and nodes that it spans.
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
    nodes: int


@dataclass(frozen=True, slots=True)
class MemorySummary:
    """How one worker fills the memory of each of its devices.

    Parameters
    ----------
    model, deployment
        Whose worker; where prefill and decode have workers of their own, as ``deployment/role``.
    accelerator_bytes
        Memory of one device.
    weights_bytes, activation_bytes, reserved_bytes, kv_cache_bytes
        Its parts on one device, in bytes; what the engine is not allowed to use is in none of them.
    kv_bytes_per_token
        What a token takes of it on one device.
    kv_cache_tokens
        Tokens that the worker's KV cache holds.
    host_kv_tokens, nvme_kv_tokens
        Tokens of it that the worker keeps in the memory of its node, and on its NVMe.
    shared_kv_usd
        US dollars for a million tokens of it in S3, until they expire; None where none are kept there.
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
    kv_bytes_per_token: float
    kv_cache_tokens: int
    host_kv_tokens: int
    nvme_kv_tokens: int
    shared_kv_usd: float | None
    concurrent_requests: int


@dataclass(frozen=True, slots=True)
class PriceNote:
    """Where the prices come from and what they leave out.

    Parameters
    ----------
    region, date, source
        Of the price table.
    blueprint_region
        Where the platform is deployed.
    not_included
        What is billed beside the pools' nodes.
    rates
        What the user's own rates file says of itself; empty without one.
    """

    region: str
    date: str
    source: str
    blueprint_region: str
    not_included: tuple[str, ...]
    rates: str = ""

    @property
    def note(self) -> str:
        """One sentence on what the prices are and whether they hold where the platform is deployed."""
        rates = f"Your rates come first: {self.rates}. " if self.rates else ""
        facts = f"{rates}On-demand prices of {self.region}, {self.date}, from {self.source}."
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
        Sums over the pools whose price is known; None where none is.
    without_used, without_max
        Pools whose price is unknown, left out of the respective sum.
    """

    nodes_used: int
    nodes_max: int
    accelerators_used: int
    accelerators_max: int
    usd_per_hour_used: float | None
    usd_per_hour_max: float | None
    without_used: tuple[str, ...]
    without_max: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TokenPrice:
    """What a million tokens of a deployment cost at its share of the stated peak; simulated.

    Parameters
    ----------
    model, deployment
        Whose tokens.
    requests_per_second
        What is served: the deployment's share of the peak, or what its workers carry when that is less.
    peak_requests_per_second
        The share of the peak, by workers.
    concurrent_requests
        Requests at once in a worker, at that rate.
    time_per_output_token_ms
        Mean time between two tokens of an answer, at that rate.
    usd_per_million_tokens, usd_per_million_output_tokens
        Over all tokens, and if output carries all; None when a price is unknown.
    usd_per_million_tokens_full
        Over all tokens, with every worker as busy as it can be.
    """

    model: str
    deployment: str
    requests_per_second: float
    peak_requests_per_second: float
    concurrent_requests: int
    time_per_output_token_ms: float
    usd_per_million_tokens: float | None
    usd_per_million_output_tokens: float | None
    usd_per_million_tokens_full: float | None

    @property
    def carries_the_peak(self) -> bool:
        """Whether the workers serve the whole share of the peak."""
        return self.requests_per_second >= self.peak_requests_per_second


@dataclass(frozen=True, slots=True)
class QuotaNeed:
    """vCPUs that one of EC2's quotas has to allow.

    Parameters
    ----------
    code, name
        In Service Quotas, service ``ec2``; empty where none is known.
    purchase
        What it counts: the blueprint's word.
    vcpu_used, vcpu_max
        For the used nodes, and for as many as the blueprint allows.
    pools
        Whose nodes; the platform's own are ``system nodes``.
    """

    code: str
    name: str
    purchase: str
    vcpu_used: int
    vcpu_max: int
    pools: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ColdStart:
    """The least time from a waiting worker to its weights in memory, on a new node of a pool.

    Parameters
    ----------
    pool, model, deployment, instance_type
        Which worker, on the type that the pool is reckoned with.
    workers_on_the_node
        Workers that start at once and share the node's network and disk.
    launch_seconds
        From the request to a node that is ready; None: unknown.
    image_bytes, image_seconds
        What the node fetches for the image; None: unknown.
    image_seconds_per_gb
        What each GB of the image takes.
    image_from
        Where the image comes from: ``registry``, compressed, or an EBS ``snapshot``, unpacked.
    weights_bytes, weights_seconds
        What the node's workers load together.
    weights_from
        Where from, and what limits it.
    """

    pool: str
    model: str
    deployment: str
    instance_type: str
    workers_on_the_node: int
    launch_seconds: float | None
    image_bytes: int | None
    image_seconds: float | None
    image_seconds_per_gb: float
    image_from: Literal["registry", "snapshot"]
    weights_bytes: int
    weights_seconds: float
    weights_from: str

    @property
    def dominated_by(self) -> str:
        """The longest known step, and from which size on an unknown image would be longer."""
        if self.image_seconds is not None:
            return "image" if self.image_seconds > self.weights_seconds else "weights"
        most = self.weights_seconds / self.image_seconds_per_gb
        form = " unpacked" if self.image_from == "snapshot" else ""
        return f"weights, unless the image is over {most:.1f} GB{form}"


@dataclass(frozen=True, slots=True)
class PoolAddresses:
    """What a pool takes of the network's IPv4 addresses.

    Parameters
    ----------
    pool
        Whose nodes; the platform's own are ``system nodes``.
    pods, prefixes, interfaces
        Of one node: pods with an address, /28 prefixes with the one kept ready, interfaces with an address.
    addresses_per_node
        Of one node, altogether.
    nodes_max
        Nodes at the most.
    nodes_in_a_subnet
        Nodes of this pool that one zone's subnet has room for beside nothing else.
    """

    pool: str
    pods: int
    prefixes: int
    interfaces: int
    addresses_per_node: int
    nodes_max: int
    nodes_in_a_subnet: int


@dataclass(frozen=True, slots=True)
class AddressUse:
    """The network's IPv4 addresses.

    Parameters
    ----------
    cidr, zones
        What is divided among how many zones.
    addresses_in_a_zone
        Left for nodes in a zone; for an existing VPC, whose subnets are unknown, its share of the range.
    is_exact
        Whether the subnets are known.
    needed, available
        For every node that may run, and in all zones.
    pools
        What each takes.
    """

    cidr: str
    zones: int
    addresses_in_a_zone: int
    is_exact: bool
    needed: int
    available: int
    pools: tuple[PoolAddresses, ...]


@dataclass(frozen=True, slots=True)
class PodFit:
    """How many workers of a deployment one node holds, and what stops the next.

    Parameters
    ----------
    pool, model, deployment, instance_type
        Which worker on which type.
    workers_per_node
        How many fit.
    limited_by
        ``devices``, ``vCPUs``, ``memory``, ``EFA interfaces`` or ``pods``.
    stranded_devices
        Devices of a node that are left without a worker for the lack of something else.
    """

    pool: str
    model: str
    deployment: str
    instance_type: str
    workers_per_node: int
    limited_by: str
    stranded_devices: int


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
    token_prices
        Of the deployments with a latency profile.
    without_profile
        Deployments without one, as ``model/deployment``.
    quotas
        Ordered by code.
    cold_starts, fits
        Of each deployment.
    addresses
        The network's.
    """

    name: str
    region: str
    pools: tuple[PoolSummary, ...]
    processes: tuple[ProcessSummary, ...]
    memory: tuple[MemorySummary, ...]
    totals: Totals
    prices: PriceNote
    token_prices: tuple[TokenPrice, ...]
    without_profile: tuple[str, ...]
    quotas: tuple[QuotaNeed, ...]
    cold_starts: tuple[ColdStart, ...]
    addresses: AddressUse
    fits: tuple[PodFit, ...]
