"""How long GPU health takes from the arrival of a hardware event to its decision and first acts.

The function's handler gets 100 events about different nodes of one cell, one after the other, as EventBridge
delivers them. The cells are those of `docs/fleet.md` for 10,000 and for 100,000 GPUs. The API server and AWS
are programs in the same process: they answer without a network, but share the processor with the handler.
Node objects are as large as real ones: a kubelet reports 50 images
(https://kubernetes.io/docs/reference/config-api/kubelet-config.v1beta1/, nodeStatusMaxImages). The first
event opens a case, cordons its node and evicts a pod; the next ones meet the guard of one replacement at a
time. A start of the function is not part of it: AWS says nothing of how long that takes.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from moto import mock_aws

from benchmarks.harness.figure import ROOT, BenchmarkError, Figure
from inference_blueprints.loading import load_blueprint
from inference_blueprints.measure.statistics import percentile
from inference_blueprints.report.fleet.fleet_split import fleet_split
from inference_blueprints.report.plan.summary import summarise
from inference_blueprints.serving.plan import build_plan

sys.path.append(str(ROOT / "runtime"))
os.environ["POWERTOOLS_LOG_LEVEL"] = "CRITICAL"  # loggers read it when they are imported
from tests.runtime.gpu_health.fake_cluster import FakeCluster
from tests.runtime.gpu_health.world import (
    NOW,
    QUIET,
    HealthWorld,
    populate,
    prepared,
    xid_event,
)
from tests.runtime.operations.fresh_process import NOBODY, begin_anew

_BLUEPRINT = "p5en-cluster"
_FLEETS = (10_000, 100_000)
_EVENTS = 100
_GOAL_SECONDS = 1.0
_IMAGES, _DIGEST = 50, "5d0f" * 16


def measure() -> list[Figure]:
    """Take the measurement."""
    return list(_figures())


def _figures() -> Iterator[Figure]:
    for gpus in _FLEETS:
        nodes = _nodes_of_a_cell(gpus)
        seconds = _decisions(nodes)
        name = f"health_decisions: {gpus:,} GPUs, cell of {nodes} nodes"
        yield Figure(f"{name}, p99", _percentile(seconds, 99), "s", goal=_GOAL_SECONDS, simulated=True)
        yield Figure(f"{name}, p50", _percentile(seconds, 50), "s", simulated=True)


def _percentile(seconds: Sequence[float], share: float) -> float:
    found = percentile(seconds, share)
    if found is None:
        raise BenchmarkError("no event was measured")
    return found


def _nodes_of_a_cell(gpus: int) -> int:
    blueprint = load_blueprint(_BLUEPRINT).blueprint
    split = fleet_split(blueprint.spec, summarise(blueprint, build_plan(blueprint), None), gpus)
    return split.nodes_per_cell


def _decisions(nodes: int) -> list[float]:
    """Return the seconds that each event took."""
    seconds = []
    with (
        pytest.MonkeyPatch.context() as patch,
        tempfile.TemporaryDirectory() as folder,
        mock_aws(),
        FakeCluster() as cluster,
    ):
        begin_anew(patch, NOBODY | QUIET)
        with prepared(cluster, patch, Path(folder)) as world:
            populate(cluster, NOW, nodes=nodes)
            for node in cluster.nodes.values():
                node["status"]["images"] = _images()
            for number in range(_EVENTS):
                began = time.perf_counter()
                world.hardware(xid_event(f"node-{number}", at=world.now - 30))
                seconds.append(time.perf_counter() - began)
            _check(world)
    return seconds


def _images() -> list[dict[str, Any]]:
    return [
        {
            "names": [
                f"000000000000.dkr.ecr.us-west-2.amazonaws.com/engine-{number}@sha256:{_DIGEST}",
                f"000000000000.dkr.ecr.us-west-2.amazonaws.com/engine-{number}:1.{number}",
            ],
            "sizeBytes": 10_000_000_000,
        }
        for number in range(_IMAGES)
    ]


def _check(world: HealthWorld) -> None:
    """Make sure that each event led to a decision, and one to acts."""
    if any(world.state(f"node-{number}") == "" for number in range(_EVENTS)):
        raise BenchmarkError("an event led to no case")
    if world.cluster.cordoned() == [] and world.cluster.deleted_claims() == []:
        raise BenchmarkError("no event led to an act")
