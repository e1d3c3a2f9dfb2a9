"""Blueprints whose workers come and go, and their platform on this machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.harness.scaled_blueprint import scaled_blueprint
from inference_blueprints.local.scaling import counted_streaming
from inference_blueprints.local.scaling.counted_load import StreamLengths
from inference_blueprints.local.scaling.counted_streaming import Disturbance, Streamed
from inference_blueprints.processes.child_processes import ProcessGroup
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.spec.types import Blueprint
from inference_blueprints.targets.local.local_serving import LocalServing
from inference_blueprints.targets.local.simulated_kind import SimulatedKind

# Longest time of one stream. It bounds a hang, not a speed.
_STREAM_SECONDS = 240.0


def aggregated(workers: int) -> Blueprint:
    """Return a blueprint with workers of one role behind two frontends."""
    return scaled_blueprint("quickstart-g6e", {"aggregated": workers})


def disaggregated(prefill: int, decode: int) -> Blueprint:
    """Return a blueprint with prefill and decode workers behind two frontends."""
    return scaled_blueprint("p5en-disaggregated", {"prefill": prefill, "decode": decode})


@contextmanager
def serving(blueprint: Blueprint, directory: Path, *, finish_seconds: int) -> Iterator[LocalServing]:
    """Run a blueprint whose workers serve on for some seconds after SIGTERM."""
    kind = SimulatedKind(blueprint, finish_seconds=finish_seconds)
    plan = build_plan(blueprint)
    with ProcessGroup() as group, LocalServing(plan, blueprint, directory, group, engines=kind) as running:
        running.start(lambda _: None)
        yield running


def stream_while(
    running: LocalServing, disturb: Disturbance, *, clients: int = 12, answers: tuple[int, int] = (20, 60)
) -> Streamed:
    """Stream from every frontend of a platform while something happens to its workers."""
    lengths = StreamLengths((50, 400), answers)
    return counted_streaming.stream_while(
        running, disturb, lengths, clients=clients, timeout_seconds=_STREAM_SECONDS
    )
