"""The same file with GPU health and a capacity shift on EKS and on ECS, and a host that loses a GPU."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import chain
from pathlib import Path
from typing import Any, Protocol

from inference_blueprints.render.ecs.metrics_task import METRICS_SERVICE
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.serving.scaling.shift_of_plan import shift_configuration_of
from inference_blueprints.spec.types import Blueprint
from inference_blueprints.synthesis import synthesise
from inference_contracts import operations_names
from inference_local.controllers.answers_server import AnswersServer
from inference_local.controllers.controlled_parts import (
    HEALTH_FACTOR,
    SHIFT_FACTOR,
    control,
)
from inference_local.controllers.controller_outcomes import OperationsRecords, calls
from inference_local.controllers.deployed_function import MINUTE_HANDLERS, deployed_function
from inference_local.controllers.metric_answers import MetricAnswers, Past, controllers_rules
from inference_local.controllers.run_clock import RunClock
from inference_local.emulator.emulator import Emulator
from inference_local.emulator.emulator_deploy import bootstrap, deploy
from inference_local.processes.child_processes import ProcessGroup
from inference_local.prometheus.local_prometheus import LocalPrometheus, ScrapeTarget
from inference_local.scaling.elastic_parts import elastic_roles, scrape_targets
from tests.local.conformance.batch_platforms import with_batch
from tests.local.conformance.elastic_platforms import elastic
from tests.local.conformance.platforms import AGGREGATED, EcsRendering, EksRendering, StreamedPlatform
from tests.local.conformance.task_prometheus import TaskPrometheus

MINIMUM, MAXIMUM = 2, 4
_POOL, _GPUS = "l40s", 4
#: Workers that the demand of the days before needs at its peak, and its seconds of the run: beginning and end
#: of the rise, and of the fall.
_PEAK, _PEAK_SECONDS = MAXIMUM - 0.3, ((30.0, 70.0), (130.0, 170.0))
#: Real time between two runs of the shift on ECS: ten minutes of its clock.
_SHIFT_SECONDS = 5.0
_MAX_NODES = 20


def controlled(content: dict[str, Any]) -> None:
    """Add both sections, and what they need. A worker has a host with four GPUs, of which one can be lost."""
    elastic(content)
    with_batch(content)
    spec = content["spec"]
    spec["pools"][0] |= {"instanceTypes": ["g6e.12xlarge"], "repairedBy": "gpuHealth"}
    spec["pools"][0]["nodes"] = {"max": MAXIMUM + 2}
    workers = spec["models"][0]["deployments"][0]["aggregated"]
    workers |= {"replicas": {"min": MINIMUM, "max": MAXIMUM}, "tensorParallelSize": _GPUS}
    spec["capacityShift"] = {"action": "shift"}
    # Among a few workers none can be slower than the others.
    spec["gpuHealth"] = {"action": "replace", "slowGpus": False}


def usual(blueprint: Blueprint) -> Callable[[float], float]:
    """Return the requests in flight of each of the days before, by the second of the run."""
    configuration = shift_configuration_of(blueprint, build_plan(blueprint))
    assert configuration is not None
    [workers] = configuration.workers
    (begins, risen), (falls, fallen) = _PEAK_SECONDS

    def demand(second: float) -> float:
        share = min((second - begins) / (risen - begins), (fallen - second) / (fallen - falls), 1.0)
        return _PEAK * workers.capacity * max(0.0, share)

    return demand


class ControlledPlatform(StreamedPlatform, Protocol):
    """A platform whose controllers run."""

    def serving(self) -> int:
        """Return the number of workers that serve."""

    def floors(self) -> list[int]:
        """Return the floors of the workers that the shift decided, in their order."""

    def failed_runs(self) -> list[str]:
        """Return the errors of the shift's runs."""

    def hosts(self) -> set[str]:
        """Return the names of the hosts that are there now."""

    def break_host(self) -> str:
        """Let a host with a worker lose a GPU, and return its name."""

    def cases(self) -> list[dict[str, Any]]:
        """Return all cases of GPU health."""

    def close(self) -> None:
        """End it."""


class ControlledEks:
    """The stacks in the emulator, the plan's processes, and stand-ins for the API server and Karpenter."""

    def __init__(self, directory: Path) -> None:
        platform = self._platform = EksRendering(directory, controlled)
        self.file, self.url = platform.file, platform.url
        self.headers: Mapping[str, str] = platform.headers
        blueprint = platform.loaded.blueprint
        self._stack = ExitStack()
        self._exporter = self._stack.enter_context(NodeExporter())
        _ask_once(platform)
        synthesise(platform.loaded.file, directory / "cdk.out")
        emulator = self._stack.enter_context(
            Emulator(directory / "emulator", region=blueprint.spec.environment.region)
        )
        bootstrap(emulator, log_path=directory / "bootstrap.log", on_line=lambda _: None)
        deploy(
            emulator,
            directory / "cdk.out",
            log_path=directory / "deploy.log",
            on_line=lambda _: None,
            on_event=lambda _: None,
        )
        prometheus = LocalPrometheus(directory / "prometheus", platform.processes, lambda _: None)
        rules = controllers_rules(blueprint.metadata.name, build_plan(blueprint), HEALTH_FACTOR)
        prometheus.start((), rules=rules)
        self._controlled = control(
            blueprint,
            platform.serving,
            emulator,
            prometheus,
            roles=elastic_roles(blueprint, platform.serving, emulator.records_directory),
            targets=lambda: chain(scrape_targets(blueprint, platform.serving), self._exporter.targets()),
            processes=platform.processes,
            directory=directory,
            ramp_seconds=1.0,
            demand=usual(blueprint),
        )
        self._directory = directory
        self._stack.enter_context(self._controlled)

    def serving(self) -> int:
        return len(self._platform.running())

    def floors(self) -> list[int]:
        name = f"{AGGREGATED.release}-worker"
        rows, _ = self._controlled.records.shifts(RunClock(0, 1), name, _POOL)
        return [each.floor for each in rows]

    def failed_runs(self) -> list[str]:
        return calls(self._directory / "controllers" / "shift-calls.jsonl")[1]

    def hosts(self) -> set[str]:
        nodes = self._controlled.nodes
        return {nodes.name(each) for each in nodes}

    def break_host(self) -> str:
        self._exporter.broken = min(self.hosts())
        return self._exporter.broken

    def cases(self) -> list[dict[str, Any]]:
        return self._controlled.records.cases()

    def close(self) -> None:
        self._stack.close()
        self._platform.close()


class ControlledEcs:
    """The rendered tasks, whose own Prometheus the functions read, and the stand-ins of the ECS target."""

    def __init__(self, directory: Path, report: Callable[[str], None]) -> None:
        began = time.time()
        rendering = self._rendering = EcsRendering(directory, report, controlled, workers=MINIMUM)
        self.file, self.url = rendering.file, rendering.url
        self.headers: Mapping[str, str] = rendering.headers
        platform = rendering.platform
        emulator, name = platform.emulator, rendering.cluster
        # The hosts have started since, and GPUs of hosts that start do not count as missing.
        health, self._shift_clock = RunClock(began, HEALTH_FACTOR), RunClock(time.time(), SHIFT_FACTOR)
        prometheus = TaskPrometheus(self._prometheus_process)
        past = Past(AGGREGATED.release, usual(rendering.loaded.blueprint))
        metrics = {
            "health": MetricAnswers(prometheus, health),
            "shift": MetricAnswers(prometheus, self._shift_clock, past),
        }
        self._stack = ExitStack()
        processes = self._stack.enter_context(ProcessGroup())
        server = self._stack.enter_context(AnswersServer(None, metrics, list, health))
        functions = {
            each: deployed_function(platform.assembly, emulator, handler)
            for each, handler in MINUTE_HANDLERS.items()
        }
        for controller, clock, seconds in (
            ("health", health, None),
            ("shift", self._shift_clock, _SHIFT_SECONDS),
        ):
            functions[controller].start(
                processes,
                emulator,
                answers=server.address,
                controller=controller,
                clock=clock,
                directory=directory / "controllers",
                every_seconds=seconds,
            )
        table = functions["health"].environment[operations_names.TABLE]
        self._records = OperationsRecords(emulator.client("dynamodb"), table, name)
        self._calls = directory / "controllers" / "shift-calls.jsonl"

    def serving(self) -> int:
        running = self._rendering.running(self._rendering.service)
        return sum(each["healthStatus"] == "HEALTHY" for each in running)

    def floors(self) -> list[int]:
        rows, _ = self._records.shifts(self._shift_clock, self._rendering.service, _POOL)
        return [each.floor for each in rows]

    def failed_runs(self) -> list[str]:
        return calls(self._calls)[1]

    def hosts(self) -> set[str]:
        return {each["ec2InstanceId"] for each in self._instances()}

    def break_host(self) -> str:
        [task, *_] = self._rendering.running(self._rendering.service)
        [host] = [
            each for each in self._instances() if each["containerInstanceArn"] == task["containerInstanceArn"]
        ]
        self._rendering.fault("LoseGpu", instance=host["containerInstanceArn"].rpartition("/")[2])
        return str(host["ec2InstanceId"])

    def cases(self) -> list[dict[str, Any]]:
        return self._records.cases()

    def close(self) -> None:
        self._stack.close()
        self._rendering.close()

    def _instances(self) -> list[dict[str, Any]]:
        ecs, cluster = self._rendering.ecs, self._rendering.cluster
        arns = ecs.list_container_instances(cluster=cluster)["containerInstanceArns"]
        described = ecs.describe_container_instances(cluster=cluster, containerInstances=arns)
        return list(described["containerInstances"])

    def _prometheus_process(self) -> int:
        [task, *_] = self._rendering.running(METRICS_SERVICE)
        processes = self._rendering.fault("Processes", task=task["taskArn"].rpartition("/")[2])
        return int(processes["processes"]["prometheus"])


def _ask_once(platform: EksRendering) -> None:
    """Send a request: without one, frontends report no requests in flight, instead of none."""
    platform.client.completions.create(model=AGGREGATED.model, prompt="Hello", max_tokens=1)


class NodeExporter:
    """A stand-in for NVIDIA's exporter of all nodes: four GPUs of each, and three of the broken one."""

    def __init__(self) -> None:
        self.broken = ""
        exporter = self

        class _NodeHandler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = "\n".join([*exporter.series(), ""]).encode()
                self.send_response(200)
                self.send_header("Content-Type", "text/plain; version=0.0.4")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Write no line per request."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _NodeHandler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def __enter__(self) -> NodeExporter:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def targets(self) -> Iterator[ScrapeTarget]:
        yield ScrapeTarget(f"http://127.0.0.1:{self._server.server_port}/metrics", {"pod": "gpu-exporter"})

    def series(self) -> Iterator[str]:
        for number in range(1, _MAX_NODES + 1):
            node = f"{_POOL}-node-{number}"
            for gpu in range(_GPUS - (node == self.broken)):
                yield f'DCGM_FI_DEV_GPU_UTIL{{node="{node}",gpu="{gpu}"}} 0'
