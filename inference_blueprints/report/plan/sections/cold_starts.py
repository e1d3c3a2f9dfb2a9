"""Time until the workers of a new node serve, part by part."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

import inference_catalog as catalog
from inference_blueprints.report.plan.cells import UNKNOWN, counted, gb
from inference_blueprints.report.plan.section import Label, PlanSection, PlanSummary, ShortLine
from inference_blueprints.report.sizing.node_packing import PackedNode
from inference_blueprints.report.tables import TextTable
from inference_blueprints.serving.estimates.worker_start import start_time, worker_start
from inference_blueprints.serving.resolved import ResolvedWorkers
from inference_blueprints.serving.types import Process
from inference_catalog.image_cache import INITIALIZATION_MIB_PER_SECOND
from inference_contracts.records import dataclass
from inference_contracts.units import GB


@dataclass(frozen=True, slots=True)
class ColdStart:
    """Time from a waiting worker until it serves, on a new node of a pool."""

    pool: str
    model: str
    deployment: str
    instance_type: str
    """`pool`, `model`, `deployment`, `instance_type`: The worker, and the assumed type of the pool."""
    workers_on_the_node: int
    """Workers that start at once and share the node's network and disk."""
    launch_seconds: float | None
    """Time from the request to a ready node; None if unknown."""
    launch_basis: str
    """`launch_basis`, `engine_basis`: Where a time is from: ``measured`` by the user, ``published`` by
    others, ``at least`` (published for a smaller model, with the load of this one's further bytes), or
    ``unknown``."""
    engine_seconds: float | None
    """Time of the engine until it serves; None if unknown."""
    engine_basis: str
    image_bytes: int | None
    image_seconds: float | None
    """`image_bytes`, `image_seconds`: Size and time of the image; None if unknown."""
    image_seconds_per_gb: float
    """Time per GB of the image."""
    image_from: Literal["registry", "snapshot"]
    """Source of the image: ``registry``, compressed, or an EBS ``snapshot``, unpacked."""
    weights_bytes: int
    weights_seconds: float
    """`weights_bytes`, `weights_seconds`: Size and time of the weights of all workers of the node."""
    weights_from: str
    """Source of the weights, and the limiting resource."""

    @property
    def known_seconds(self) -> float:
        """Time of all parts that are known."""
        parts = (self.launch_seconds, self.image_seconds, self.weights_seconds, self.engine_seconds)
        return sum(part for part in parts if part is not None)

    @property
    def dominated_by(self) -> str:
        """The longer transfer, and the image size above which an unknown image would take longer."""
        if self.image_seconds is not None:
            return "image" if self.image_seconds > self.weights_seconds else "weights"
        maximum = self.weights_seconds / self.image_seconds_per_gb
        form = " unpacked" if self.image_from == "snapshot" else ""
        return f"weights, unless the image is larger than {maximum:.1f} GB{form}"


def _cold_start(resolved: ResolvedWorkers, process: Process, nodes: Sequence[PackedNode]) -> ColdStart:
    """Return the start of a deployment's workers on a new node.

    nodes: The pool's used nodes, of one type.
    """
    kind = nodes[0].instance_type
    key = resolved.model.name, resolved.deployment.name, process.name
    # Workers that batch gets when real time leaves something may have no place among those that are drawn.
    together = max(
        1,
        *(
            sum((each.model, each.deployment, each.process.name) == key for each in node.workers)
            for node in nodes
        ),
    )
    start = start_time(resolved, process.image, kind, together)
    parts = worker_start(resolved, process.image, kind, together)
    launch, engine = parts.part("launch"), parts.part("engine")
    return ColdStart(
        pool=resolved.pool.name,
        model=key[0],
        deployment=resolved.label,
        instance_type=kind.name,
        workers_on_the_node=together,
        launch_seconds=launch.seconds,
        launch_basis=launch.basis,
        engine_seconds=engine.seconds,
        engine_basis=engine.basis,
        image_bytes=start.image_bytes,
        image_seconds=start.image_seconds,
        image_seconds_per_gb=GB / start.image_bytes_per_second,
        image_from="snapshot" if resolved.pool.image_snapshot_id else "registry",
        weights_bytes=start.weights_bytes,
        weights_seconds=start.weights_seconds,
        weights_from=f"from {'S3' if resolved.model.weights.in_s3 else 'the Hub'} by {start.weights_limit}",
    )


def cold_starts(summary: PlanSummary) -> TextTable:
    return TextTable(
        "Cold start of a new node",
        ("deployment", "node", "weights"),
        (
            "launch, s",
            "image, s or s per GB",
            "weights, GB",
            "load weights, s",
            "engine, s",
            "sum of the known, s",
        ),
        tuple(map(_cold_start_row, summary[COLD_STARTS])),
        tuple(_cold_start_notes(summary[COLD_STARTS])),
    )


def _cold_start_row(start: ColdStart) -> tuple[str, ...]:
    return (
        f"{start.model}/{start.deployment}",
        f"{counted(start.workers_on_the_node, 'worker')} on {start.instance_type}",
        start.weights_from.replace(" by ", ", limited by "),
        _with_basis(start.launch_seconds, start.launch_basis),
        f"{start.image_seconds_per_gb:.2f} per GB"
        if start.image_seconds is None
        else f"{start.image_seconds:.0f}",
        gb(start.weights_bytes),
        f"{start.weights_seconds:.0f}",
        _with_basis(start.engine_seconds, start.engine_basis),
        f"{start.known_seconds:.0f}",
    )


def _with_basis(seconds: float | None, basis: str) -> str:
    if seconds is None:
        return UNKNOWN
    return f"at least {seconds:.0f}" if basis == "at least" else f"{seconds:.0f}, {basis}"


def _cold_start_notes(starts: Sequence[ColdStart]) -> Iterable[str]:
    yield (
        "Image and weights are computed, and a minimum: bytes divided by the bandwidth of the node's first "
        "network card, of EBS and, for weights and images from the internet, of one NAT gateway (100 "
        "Gbit/s). The Hugging Face Hub and NVMe add time. Workers that start together share the node's "
        "network, and all nodes of a zone share its NAT gateway."
    )
    engine = {start.engine_basis for start in starts}
    used = {
        "launch": any(start.launch_basis == "published" for start in starts),
        "engine": bool(engine & {"published", "at least"}),
        "load": "at least" in engine,
    }
    for part, figure in catalog.start_times().items():
        if used[part]:
            key = "engine" if part == "load" else part
            yield (
                f"Published {part}, {figure.date}: {figure.measured} ({figure.source}). Write what you "
                f"measure into 'measuredStart.{key}Seconds' of the workers."
            )
    if used["load"]:
        yield (
            "An engine's time with 'at least' is the published one of a smaller model, and the time to load "
            "the further bytes of this one at the published rate. What compiling and warming up takes longer "
            "is unknown."
        )
    if any(start.image_from == "snapshot" for start in starts):
        yield (
            f"An image from a snapshot is unpacked and loads at up to {INITIALIZATION_MIB_PER_SECOND} MiB/s. "
            "The engine starts before the whole image is there and waits for the parts that it reads."
        )
    for start in starts:
        yield f"Longer transfer for {start.model}/{start.deployment}: {start.dominated_by}."


def _in_short(summary: PlanSummary) -> Iterator[ShortLine]:
    """Yield the time until the slowest deployment serves on a new node: the sum of what is known of it."""
    slowest = max(summary[COLD_STARTS], key=lambda each: each.known_seconds)
    name = f"{slowest.model}/{slowest.deployment} " if len(summary[COLD_STARTS]) > 1 else ""
    image = f", and {slowest.image_seconds_per_gb:.1f} s per GB of its image"
    parts = {"the launch": slowest.launch_seconds, "the start of the engine": slowest.engine_seconds}
    unknown = " and ".join(part for part, seconds in parts.items() if seconds is None)
    without = f"; plus {unknown} (unknown)" if unknown else ""
    if slowest.engine_basis == "at least":
        without += "; the engine of so large a model takes longer"
    yield (
        Label.NEW_NODE,
        f"{name}serves after at least {slowest.known_seconds:.0f} s"
        f"{image if slowest.image_seconds is None else ''}{without}",
    )


COLD_STARTS = PlanSection(
    "coldStarts",
    lambda basis: tuple(
        _cold_start(resolved, process, basis.placed[resolved.pool.name]) for resolved, process in basis.roles
    ),
    _in_short,
    (cold_starts,),
    ("dominated_by",),
)
