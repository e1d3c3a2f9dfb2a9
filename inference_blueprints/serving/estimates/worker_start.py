"""Time from the decision for a worker until it serves, on a new node: part by part, each with its basis."""

from __future__ import annotations

from typing import Literal

import inference_catalog as catalog
from inference_blueprints.serving.estimates.node_copies import reads_node_copy, streams_weights
from inference_blueprints.serving.resolved import ResolvedWorkers
from inference_blueprints.spec.types import MeasuredStart
from inference_catalog import InstanceType
from inference_catalog.image_cache import INITIALIZATION_MIB_PER_SECOND
from inference_catalog.limits import NAT_GATEWAY_MAXIMUM_MBPS
from inference_catalog.node_facts import image_volume_mib_per_second
from inference_contracts.records import dataclass
from inference_contracts.units import MIB

_BYTES_PER_MEGABIT = 125_000


@dataclass(frozen=True, slots=True)
class StartTime:
    """What a new node fetches, and how fast at most."""

    image_bytes: int | None
    """Size of the image, as it is fetched; None if unknown."""
    image_bytes_per_second: float
    """Rate at which it arrives."""
    weights_bytes: int
    """Weights that the node's workers fetch."""
    weights_bytes_per_second: float
    """Rate at which they arrive."""
    weights_limit: str
    """What limits that rate."""

    @property
    def image_seconds(self) -> float | None:
        """Time to fetch the image; None if its size is unknown."""
        return None if self.image_bytes is None else self.image_bytes / self.image_bytes_per_second

    @property
    def weights_seconds(self) -> float:
        """Time to fetch the weights."""
        return self.weights_bytes / self.weights_bytes_per_second

    @property
    def seconds(self) -> float:
        """Time to fetch both, without an image of unknown size."""
        return (self.image_seconds or 0.0) + self.weights_seconds


def start_time(resolved: ResolvedWorkers, image: str, kind: InstanceType, together: int) -> StartTime:
    """Return the minimum time of workers on a new node.

    Weights arrive once if the workers of the node share a copy, and else once per worker, all over one
    network and one disk. Each worker fetches its draft itself. IP has one network card of a node's, for the
    others carry EFA alone. Streamed weights touch no disk. AWS publishes operations of NVMe and not bytes a
    second, so NVMe is not counted. An image on a snapshot is unpacked, and EBS fetches it at the rate that is
    asked for. What comes from the internet passes one NAT gateway of the platform, because a node uses that
    of its zone. The Hub, other nodes of the zone and what the engine does after loading only add to it.

    image: The workers' image.
    kind: Instance type of the node.
    together: Number of workers that start on the node.
    """
    network = kind.network_bandwidth_mbps // kind.network_cards * _BYTES_PER_MEGABIT
    disk = _disk_bytes_per_second(kind, resolved)
    streamed, in_s3 = streams_weights(resolved), resolved.model.weights.in_s3
    weights = (1 if reads_node_copy(resolved) else together) * resolved.shape.weight_bytes
    weights += together * resolved.draft_file_bytes
    limits = {"network": network}
    if resolved.blueprint.spec.network.existing is None:
        limits["NAT gateway"] = NAT_GATEWAY_MAXIMUM_MBPS * _BYTES_PER_MEGABIT
    if disk:
        limits["EBS"] = disk
    # The gateway endpoint of S3 bypasses the NAT gateways.
    on_the_way = {
        name: rate
        for name, rate in limits.items()
        if name == "network" or (name == "EBS" and not streamed) or not in_s3
    }
    limit = min(on_the_way, key=lambda name: on_the_way[name])
    image_bytes, image_rate = _image_bytes(image), min(limits.values())
    if resolved.pool.image_snapshot_id:
        image_bytes = _image_bytes(image, unpacked=True)
        image_rate = min(INITIALIZATION_MIB_PER_SECOND * MIB, disk or network)
    return StartTime(image_bytes, image_rate, weights, on_the_way[limit], limit)


def _image_bytes(reference: str, *, unpacked: bool = False) -> int | None:
    """Return the size of an image, compressed or unpacked; None if unknown."""
    image = catalog.images().get(reference.partition("@")[0])
    if image is None:
        return None
    return image.unpacked_bytes if unpacked else image.compressed_bytes


def _disk_bytes_per_second(kind: InstanceType, resolved: ResolvedWorkers) -> int | None:
    """Return the bandwidth of the EBS volume; None if images and weights are on NVMe."""
    volume = image_volume_mib_per_second(resolved.types, from_snapshot=bool(resolved.pool.image_snapshot_id))
    if volume is None:
        return None
    return min(volume * MIB, kind.ebs_bandwidth_mbps * _BYTES_PER_MEGABIT)


#: ``measured`` by the user, ``published`` by others for other hardware, ``computed`` as bytes divided by
#: bandwidth, which is a minimum, and ``at least``: published for a smaller model, with the time that the
#: further bytes of this one take to load.
StartBasis = Literal["measured", "published", "computed", "at least", "unknown"]
#: A published time of an engine is that of models with up to so many times the weights.
_ALIKE = 2.0
_BASIS_WORDS = {"at least": "at least, from a smaller model and its own bytes"}
#: The only engine with a published time.
_PUBLISHED_ENGINE = "vllm"


@dataclass(frozen=True, slots=True)
class StartPart:
    """A part of the start."""

    name: str
    """The part: ``launch``, ``image``, ``weights`` or ``engine``."""
    seconds: float | None
    """Its time; None if unknown."""
    basis: StartBasis
    """Where the time is from."""

    @property
    def clause(self) -> str:
        """The part in a sentence."""
        return (
            f"{self.name} unknown, counted as 0 s"
            if self.seconds is None
            else f"{self.name} {self.seconds:.0f} s, {_BASIS_WORDS.get(self.basis, self.basis)}"
        )


@dataclass(frozen=True, slots=True)
class WorkerStart:
    """The start of a worker: one part after the other."""

    parts: tuple[StartPart, ...]

    @property
    def seconds(self) -> float:
        """Time of all parts that are known."""
        return sum(part.seconds or 0.0 for part in self.parts)

    @property
    def minimum(self) -> WorkerStart:
        """The parts that are measured, or computed as a minimum. Published times are of other hardware."""
        return WorkerStart(tuple(part for part in self.parts if part.basis in ("measured", "computed")))

    @property
    def on_a_running_node(self) -> WorkerStart:
        """The parts on a node that runs, and that has the image."""
        return WorkerStart(tuple(part for part in self.parts if part.name in ("weights", "engine")))

    @property
    def clause(self) -> str:
        """All parts in a sentence."""
        return "; ".join(part.clause for part in self.parts)

    def part(self, name: str) -> StartPart:
        """Return one part."""
        return next(part for part in self.parts if part.name == name)


def worker_start(resolved: ResolvedWorkers, image: str, kind: InstanceType, together: int) -> WorkerStart:
    """Return the start of workers on a new node.

    kind: Instance type of the node.
    together: Number of workers that start on the node.
    """
    fetched = start_time(resolved, image, kind, together)
    measured = resolved.workers.measured_start or MeasuredStart()
    return WorkerStart(
        (
            _part("launch", measured.launch_seconds),
            StartPart(
                "image", fetched.image_seconds, "unknown" if fetched.image_seconds is None else "computed"
            ),
            StartPart("weights", fetched.weights_seconds, "computed"),
            _engine(resolved, measured.engine_seconds),
        )
    )


def _part(name: str, measured: int | None) -> StartPart:
    if measured is not None:
        return StartPart(name, float(measured), "measured")
    return StartPart(name, catalog.start_times()[name].seconds, "published")


def _engine(resolved: ResolvedWorkers, measured: int | None) -> StartPart:
    """Return the start of the engine. That of a much larger model than the measured one follows its size."""
    if measured is None and resolved.model.engine.chosen != _PUBLISHED_ENGINE:
        return StartPart("engine", None, "unknown")
    published, load = _part("engine", measured), catalog.start_times()["load"]
    known = catalog.start_times()["engine"].weights_bytes or 0
    own = resolved.shape.weight_bytes // resolved.nodes
    if measured is not None or own <= _ALIKE * known or not load.weights_bytes:
        return published
    further = (own - known) * load.seconds / load.weights_bytes
    return StartPart("engine", (published.seconds or 0.0) + further, "at least")
