"""Blueprints whose workers come and go, and their platform on this machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from inference_blueprints.loading import load_blueprint
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.spec.types import Blueprint
from inference_local.processes.child_processes import ProcessGroup
from inference_local.serving.local_serving import LocalServing
from inference_local.serving.simulated_kind import SimulatedKind


def scaled_blueprint(name: str, replicas: Mapping[str, int]) -> Blueprint:
    """Return a shipped blueprint whose first deployment has other numbers of workers.

    name: The shipped blueprint.
    replicas: Number of workers by role: ``aggregated``, or ``prefill`` and ``decode``.
    """
    document = load_blueprint(name).blueprint.model_dump(by_alias=True, exclude_unset=True)
    deployment = document["spec"]["models"][0]["deployments"][0]
    roles = deployment.get("disaggregated") or deployment
    for role, count in replicas.items():
        roles[role]["replicas"] = count
    return Blueprint.model_validate(document)


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
