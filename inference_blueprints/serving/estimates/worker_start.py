"""Time from the decision for a worker until it serves, on a new node: part by part, each with its basis."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import inference_catalog as catalog
from inference_blueprints.serving.estimates.start_time import start_time
from inference_blueprints.serving.resolved import ResolvedWorkers
from inference_blueprints.spec.types import MeasuredStart
from inference_catalog import InstanceType

#: ``measured`` by the user, ``published`` by others for other hardware, ``computed`` as bytes divided by
#: bandwidth, which is a minimum.
StartBasis = Literal["measured", "published", "computed", "unknown"]
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
            else f"{self.name} {self.seconds:.0f} s, {self.basis}"
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
    published_engine = resolved.model.engine.chosen == _PUBLISHED_ENGINE
    return WorkerStart(
        (
            _part("launch", measured.launch_seconds, is_published=True),
            StartPart(
                "image", fetched.image_seconds, "unknown" if fetched.image_seconds is None else "computed"
            ),
            StartPart("weights", fetched.weights_seconds, "computed"),
            _part("engine", measured.engine_seconds, is_published=published_engine),
        )
    )


def _part(name: str, measured: int | None, *, is_published: bool) -> StartPart:
    if measured is not None:
        return StartPart(name, float(measured), "measured")
    if is_published:
        return StartPart(name, catalog.start_times()[name].seconds, "published")
    return StartPart(name, None, "unknown")
