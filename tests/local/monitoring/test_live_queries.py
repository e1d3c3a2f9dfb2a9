"""Every recorded series that real frontends and simulated engines feed exists, with the right labels."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import openai
import pytest
import yaml

from inference_blueprints import resources
from inference_blueprints.contracts.metric_labels import SYSTEM_POOL, TargetLabels
from inference_blueprints.local.prometheus.local_prometheus import LocalPrometheus, ScrapeTarget
from inference_blueprints.monitoring.alarm_table import platform_alarms
from inference_blueprints.monitoring.recording_rules import NodePrice, rule_file, rules
from inference_blueprints.monitoring.recordings import Recording, recordings
from inference_blueprints.processes.child_processes import ProcessGroup
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.serving.types import ServingPlan
from inference_blueprints.spec.types import Blueprint, Objectives
from inference_blueprints.targets.local.local_endpoint import LocalEndpoint
from inference_blueprints.targets.local.local_serving import LocalServing

_MODEL = "qwen3-8b"
#: Series of programs that this machine does not run. `test_costs` and `test_alarms` read recorded ones.
_ABSENT = ("DCGM_FI_DEV", "node_amazonefa", "keda_", "pool_nodes", "pool_gpus", "model_usd_per_hour")
_PRICE = NodePrice(pool="l40s", instance_type="g6e.2xlarge", purchase="on-demand", usd_per_hour=2.2)
_OBJECTIVES = {_MODEL: Objectives(time_to_first_token_p90_ms=2000, time_per_output_token_p90_ms=100)}


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
            stream = self._client.chat.completions.create(
                model=_MODEL, messages=[{"role": "user", "content": message}], max_tokens=30, stream=True
            )
            for _ in stream:
                pass


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[LocalPrometheus, str, ServingPlan]]:
    text = (resources.blueprints_directory() / "quickstart-g6e.yaml").read_text()
    blueprint = Blueprint.model_validate(yaml.safe_load(text))
    plan, platform = build_plan(blueprint), blueprint.metadata.name
    directory: Path = tmp_path_factory.mktemp("monitoring")
    with (
        ProcessGroup() as processes,
        LocalServing(plan, blueprint, directory, processes) as serving,
    ):
        (endpoint,) = serving.start(lambda _: None)
        prometheus = LocalPrometheus(directory / "prometheus", processes, lambda _: None)
        found = rules(platform, plan, objectives=_OBJECTIVES, prices=[_PRICE])
        file = rule_file(found).replace("interval: 15s", "interval: 1s")
        prometheus.start(_targets(serving, plan, platform), rules=file)
        load = _Load(endpoint)
        load.start()
        try:
            prometheus.wait_for("serving_requests_per_second > 0")
            prometheus.wait_for("serving_first_token_late_ratio_5m")
            yield prometheus, platform, plan
        finally:
            load.stop()


def _is_local(recording: Recording) -> bool:
    return not any(name in text for text in recording.promql.values() for name in _ABSENT)


@pytest.mark.parametrize(
    "recording", [each for each in recordings() if _is_local(each)], ids=lambda each: each.name
)
def test_a_recorded_series_exists_with_its_labels(
    recording: Recording, live: tuple[LocalPrometheus, str, ServingPlan]
) -> None:
    prometheus, platform, _ = live
    assert set(recording.promql) & {"dynamo", "vllm", "any"}
    for series in recording.series:
        for sample in prometheus.wait_for(series):
            assert set(sample.labels) == {"__name__", *recording.labels}
            assert sample.labels["platform"] == platform
            assert sample.value >= -1e-9


def test_alarms_are_silent_and_valid_while_all_is_well(
    live: tuple[LocalPrometheus, str, ServingPlan],
) -> None:
    prometheus, platform, plan = live
    prometheus.wait_for("serving_workers_up == 2")
    prometheus.wait_for("serving_workers_least")
    answers = {alarm.name: prometheus.query(alarm.query) for alarm in platform_alarms(platform, plan)}
    assert {name: samples for name, samples in answers.items() if samples} == {}


def test_open_requests_are_counted_once_by_several_frontends(
    live: tuple[LocalPrometheus, str, ServingPlan],
) -> None:
    prometheus, _, _ = live
    # Six callers: with double counting, there would be up to twelve.
    found = prometheus.wait_for("serving_requests_in_flight > 0")
    assert 1 <= found[0].value <= 6
