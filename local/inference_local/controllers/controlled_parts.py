"""Prepares a controlled run: clocks, stand-ins, rules, and the deployed functions."""

from __future__ import annotations

import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from inference_blueprints.measure.replay.trace_replay import TWO_RAMPS, share_at
from inference_blueprints.serving.autoscaling.scaled_object import ScaledObject
from inference_blueprints.serving.traffic import model_traffic
from inference_blueprints.spec.types import Blueprint
from inference_contracts import operations_names
from inference_contracts.units import SECONDS_PER_DAY
from inference_local.controllers.answers_server import AnswersServer
from inference_local.controllers.cluster_objects import ClusterObjects
from inference_local.controllers.controlled_run import CLIENTS, ControlledParts, ControlledRun
from inference_local.controllers.controller_outcomes import OperationsRecords
from inference_local.controllers.deployed_function import MINUTE_HANDLERS, deployed_function
from inference_local.controllers.metric_answers import BatchInFlight, MetricAnswers, Past
from inference_local.controllers.run_clock import RunClock
from inference_local.controllers.worker_nodes import WorkerNodes
from inference_local.emulator.emulator import Emulator
from inference_local.processes.child_processes import ProcessGroup
from inference_local.prometheus.local_prometheus import LocalPrometheus, ScrapeTarget
from inference_local.scaling.elastic_run import ElasticRun
from inference_local.scaling.operator_stand_in import ElasticRole
from inference_local.serving.local_serving import LocalServing
from inference_local.serving.platform_parts import PlatformPart
from inference_local.serving.running_workers import WorkerProcess

#: How much faster the clock of GPU health goes: a minute, which is its window, has enough requests.
HEALTH_FACTOR = 4.0
#: How much faster the clock of the capacity shift goes: a ramp lasts some hours.
SHIFT_FACTOR = 120.0
#: Real time between two runs of the shift. The processors of this machine cannot do it twice as often.
_SHIFT_SECONDS = 1.0
#: Time of a request of the shipped workload, as runs of this machine had it (simulated).
_REQUEST_SECONDS = 8.0
#: About how long a worker is slow, with another load.
_SLOWED_SECONDS = 120.0
_PROBE_SECONDS = 2.0
_FIRST_VERSION = "1"


def control(
    blueprint: Blueprint,
    serving: LocalServing,
    emulator: Emulator,
    prometheus: LocalPrometheus,
    *,
    roles: list[tuple[ElasticRole, ScaledObject]],
    targets: Callable[[], Iterator[ScrapeTarget]],
    processes: ProcessGroup,
    directory: Path,
    ramp_seconds: float,
    demand: Callable[[float], float] | None = None,
) -> ControlledRun:
    """Return the controllers of a running platform, ready to begin.

    prometheus: Scrapes frontends and workers, and records what `controllers_rules` says.
    roles: The elastic roles, each with its rendered object.
    targets: Returns what there is to scrape.
    processes: The group that the programs join.
    directory: Folder of the run, with its templates and assets.
    ramp_seconds: Length of each of the two ramps, from which the demand of the days before follows.
    demand: That demand, in requests in flight by the second of the run, if it is another one.
    """
    began = time.time()
    health, shift = RunClock(began, HEALTH_FACTOR), RunClock(began, SHIFT_FACTOR)
    nodes = {
        role.name: WorkerNodes(serving.workers, role, partial(_is_ready, serving), began - SECONDS_PER_DAY)
        for role, _ in roles
    }
    first = next(iter(nodes.values()))
    objects = ClusterObjects(
        tuple(nodes.values()),
        health,
        {pool.name: pool.types[0].name for pool in blueprint.spec.pools},
        _rendered(emulator.records_directory, "scaledobject.keda.sh"),
        _rendered(emulator.records_directory, "clusterqueue.kueue.x-k8s.io"),
    )
    peak = model_traffic(blueprint.spec, blueprint.spec.models[0]).requests_per_second
    ramps = partial(_usual_demand, peak=peak, ramp_seconds=ramp_seconds)
    past = Past(first.role.deployment.plan.release, demand or ramps)
    batch = BatchInFlight(directory / "batch" / "logs", shift)
    server = AnswersServer(
        objects,
        {"health": MetricAnswers(prometheus, health), "shift": MetricAnswers(prometheus, shift, past)},
        batch.points,
        health,
    )
    functions = {
        name: deployed_function(directory / "cdk.out", emulator, handler)
        for name, handler in MINUTE_HANDLERS.items()
    }

    def start() -> tuple[Path, Path]:
        folder = directory / "controllers"
        return (
            functions["health"].start(
                processes,
                emulator,
                answers=server.address,
                controller="health",
                clock=health,
                directory=folder,
            ),
            functions["shift"].start(
                processes,
                emulator,
                answers=server.address,
                controller="shift",
                clock=shift,
                directory=folder,
                every_seconds=_SHIFT_SECONDS,
            ),
        )

    elastic = ElasticRun(
        serving,
        prometheus,
        roles,
        lambda: pod_targets(targets(), nodes.values()),
        operator=lambda role: nodes[role.name],
        floor=lambda role: objects.floor(role.name),
    )
    table = functions["health"].environment[operations_names.TABLE]
    return ControlledRun(
        ControlledParts(
            elastic=elastic,
            nodes=first,
            frontends=serving.frontend_urls(first.role.deployment),
            server=server,
            prometheus=prometheus,
            records=OperationsRecords(emulator.client("dynamodb"), table, blueprint.metadata.name),
            batch_in_flight=batch,
            health_clock=health,
            shift_clock=shift,
            start=start,
            check=serving.check,
        )
    )


def pod_targets(targets: Iterator[ScrapeTarget], roles: Any) -> Iterator[ScrapeTarget]:
    """Yield what there is to scrape, with the names of pods and nodes as the cluster has them."""
    for target in targets:
        found = None
        for role in roles:
            node = next((each for each in role if _label(each.place) == target.labels["pod"]), None)
            if node is not None and node.has_pod:
                found = {"pod": role.pod_name(node), "node": role.name(node)}
        yield replace(target, labels={**target.labels, **found}) if found else target


def controlled_platform_parts() -> tuple[PlatformPart, ...]:
    """Return the rows of the table of parts for a controlled run."""
    return (
        PlatformPart(
            "GPU health and capacity shift",
            "real",
            "the deployed code of both functions, called in a process of this machine; their table, freeze "
            "switch and topic are the emulator's; ceilings act on the real batch scheduler. The clock of GPU "
            f"health goes {HEALTH_FACTOR:g} times faster, that of the shift {SHIFT_FACTOR:g} times, and the "
            f"shift runs each {SHIFT_FACTOR * _SHIFT_SECONDS / 60:g} min of it",
        ),
        PlatformPart(
            "Kubernetes API, Karpenter, kubelets",
            "stand-in",
            "an HTTP server with nodes, pods, NodeClaims, ScaledObjects, autoscalers and ClusterQueues; an "
            "evicted pod is a worker process that gets SIGTERM, and a new node one that starts later",
        ),
        PlatformPart(
            "CloudWatch metrics",
            "stand-in",
            "PromQL is answered by the run's Prometheus; series of workers are made from metrics of Dynamo's "
            "runtime, since the simulated engine has none of vLLM's. The two days before the run are made up "
            "to be like it",
        ),
        PlatformPart(
            "EventBridge Scheduler",
            "stand-in",
            "a loop that calls the functions; events of hardware alarms do not occur in this run",
        ),
    )


def _usual_demand(second: float, *, peak: float, ramp_seconds: float) -> float:
    """Return the requests in flight of each day at a second of the run: two ramps, then a steady load."""
    both = 2 * ramp_seconds
    if both <= second < both + _SLOWED_SECONDS:
        return float(CLIENTS)
    return peak * _REQUEST_SECONDS * share_at(min(1.0, second / both), TWO_RAMPS)


def _rendered(records: Path, kind: str) -> dict[str, dict[str, Any]]:
    """Return the rendered objects of a kind by name, with a version."""
    found = {}
    for path in records.glob(f"*/*/{kind}-*.yaml"):
        content: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
        content["metadata"]["resourceVersion"] = _FIRST_VERSION
        found[str(content["metadata"]["name"])] = content
    return found


def _label(place: WorkerProcess) -> str:
    return place.name.replace(" ", "-")


def _is_ready(serving: LocalServing, place: WorkerProcess) -> bool:
    """Return whether a worker process says that it is ready, as the kubelet asks it."""
    process = next((each for each in serving.served_processes() if each.name == place.name), None)
    if process is None:
        return False
    try:
        with urllib.request.urlopen(f"{process.url}{process.health_path}", timeout=_PROBE_SECONDS) as answer:  # noqa: S310 - loopback
            return int(answer.status) == 200  # noqa: PLR2004
    except OSError:
        return False
