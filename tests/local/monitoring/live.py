"""A platform under load with a real Prometheus: simulated engines here, real ones in tests of engines."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import openai

from inference_blueprints.render.monitoring.recording_rules import rule_file, rules
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.serving.types import ServingPlan
from inference_blueprints.spec.types import LatencyPercentiles, Objectives
from inference_contracts.metric_labels import SYSTEM_POOL, TargetLabels
from inference_local.processes.child_processes import ProcessGroup
from inference_local.prometheus.local_prometheus import LocalPrometheus, ScrapeTarget
from inference_local.serving.local_endpoint import LocalEndpoint
from inference_local.serving.local_serving import LocalServing
from tests.local.monitoring.asked import MODEL, PRICE, quickstart
from tests.local.monitoring.exporters import relabelling

_OBJECTIVES = Objectives(
    time_to_first_token_p90_ms=2000,
    time_per_output_token_p90_ms=100,
    request_ms=LatencyPercentiles(p90=60_000),
)


def _targets(serving: LocalServing, plan: ServingPlan, platform: str) -> list[ScrapeTarget]:
    processes = {
        (deployment.release, process.name): (deployment, process)
        for model in plan.models
        for deployment in model.deployments
        for process in deployment.processes
    }
    found = []
    for served in serving.served_processes():
        deployment, process = processes[served.release, served.process]
        labels = TargetLabels(
            platform=platform,
            model=deployment.model,
            release=deployment.release,
            role=process.role,
            pool=process.pool or SYSTEM_POOL,
            pod=served.name,
            node="this-machine",
        )
        found.append(ScrapeTarget(f"{served.url}/metrics", labels.as_mapping()))
    return found


class _Load:
    """Asks the model again and again until it is stopped."""

    def __init__(self, endpoint: LocalEndpoint) -> None:
        self._client = openai.OpenAI(base_url=endpoint.base_url, api_key="none", max_retries=0)
        self._stopped = threading.Event()
        self._threads = [threading.Thread(target=self._ask, args=(each,)) for each in range(6)]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stopped.set()
        for thread in self._threads:
            thread.join()

    def _ask(self, number: int) -> None:
        while not self._stopped.is_set():
            message = f"{number} {time.monotonic()} " + "word " * 200
            with contextlib.suppress(openai.APIError):  # a worker may be killed
                for _ in self._client.chat.completions.create(
                    model=MODEL, messages=[{"role": "user", "content": message}], max_tokens=30, stream=True
                ):
                    pass


@dataclass(frozen=True, slots=True)
class LivePlatform:
    prometheus: LocalPrometheus
    name: str
    plan: ServingPlan
    serving: LocalServing
    processes: ProcessGroup


@contextlib.contextmanager
def watched(
    platform: LivePlatform,
    endpoint: LocalEndpoint,
    *,
    objectives: Objectives = _OBJECTIVES,
    interval_seconds: int = 1,
    exporters: Sequence[ScrapeTarget] = (),
) -> Iterator[LivePlatform]:
    """Ask a served model without a pause, and let Prometheus record its series.

    interval_seconds: Time between two scrapes, and between two evaluations of the rules.
    exporters: Further targets, such as recorded output of exporters.
    """
    found = rules(platform.name, platform.plan, objectives={MODEL: objectives}, prices=[PRICE])
    file = rule_file(found).replace("interval: 15s", f"interval: {interval_seconds}s")
    targets = _targets(platform.serving, platform.plan, platform.name)
    prometheus = platform.prometheus
    prometheus.start(
        [*targets, *exporters], interval_seconds=interval_seconds, rules=file, relabelling=relabelling()
    )
    load = _Load(endpoint)
    load.start()
    try:
        prometheus.wait_for("serving_requests_per_second > 0")
        prometheus.wait_for("serving_first_token_late_ratio_5m")
        prometheus.wait_for("serving_workers_up == 2")
        yield platform
    finally:
        load.stop()


@contextlib.contextmanager
def live_platform(directory: Path, exporters: Sequence[ScrapeTarget] = ()) -> Iterator[LivePlatform]:
    """Serve the quickstart by simulated engines, ask it, and watch it."""
    blueprint = quickstart()
    plan = build_plan(blueprint)
    with (
        ProcessGroup() as processes,
        LocalServing(plan, blueprint, directory, processes) as serving,
    ):
        (endpoint,) = serving.start(lambda _: None)
        prometheus = LocalPrometheus(directory / "prometheus", processes, lambda _: None)
        platform = LivePlatform(prometheus, blueprint.metadata.name, plan, serving, processes)
        with watched(platform, endpoint, exporters=exporters):
            yield platform
