"""The command `verify --local` against a platform of this machine: real processes, simulated engines."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import urllib3
import yaml

from inference_blueprints import resources
from inference_blueprints.operate.check_results import CheckResult
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.spec.types import Blueprint
from inference_local.local_verification import NOT_HERE, served_here, verify_served
from inference_local.processes.child_processes import ProcessGroup
from inference_local.run_state import RunClaim, RunningModel, RunState, claim
from inference_local.serving.local_endpoint import LocalEndpoint
from inference_local.serving.local_serving import LocalServing
from tests.local.serving.conftest import Served
from tests.unit.command_run import Ran, blueprints

NAME = "quickstart-g6e"
UPTIME = "dynamo_component_uptime_seconds{"


def published(
    serving: LocalServing, *endpoints: LocalEndpoint, blueprint: str = "quickstart-g6e"
) -> RunState:
    """What `local up` publishes of a running platform."""
    models = tuple(RunningModel(each.model, each.base_url, each.context_length) for each in endpoints)
    return RunState(os.getpid(), NAME, "ready", models, processes=serving.served_processes())


def short_answers(name: str) -> Any:
    """A shipped blueprint with short answers: each takes its time, at the pace of the simulated engine."""
    document = yaml.safe_load((resources.blueprints_directory() / f"{name}.yaml").read_text())
    document["spec"]["models"][0]["workload"]["outputTokens"] = 20
    return document


def disaggregated() -> Blueprint:
    """The shipped blueprint with fewer workers."""
    document = short_answers("p5en-disaggregated")
    roles = document["spec"]["models"][0]["deployments"][0]["disaggregated"]
    roles["prefill"]["replicas"], roles["decode"]["replicas"] = 2, 1
    return Blueprint.model_validate(document)


@contextmanager
def running(state: RunState, directory: Path) -> Iterator[RunClaim]:
    with claim(directory) as right:
        right.publish(state)
        yield right


def verified(directory: Path, *options: str, name: str = NAME) -> Ran:
    return blueprints(
        "verify", name, "--local", "--run-directory", str(directory), *options, folder=directory
    )


def not_ok(results: list[CheckResult]) -> list[CheckResult]:
    return [each for each in results if each.severity not in ("ok", "unknown")]


def test_a_local_platform_is_checked_like_a_cluster(served: Served, tmp_path: Path) -> None:
    file = tmp_path / f"{NAME}.yaml"
    file.write_text(yaml.safe_dump(short_answers(NAME)))
    with running(published(served.serving, served.endpoint), tmp_path):
        result = verified(tmp_path, "--output", "json", name=str(file))
    seen = json.loads(result.out)
    here = [(each["check"], each["severity"]) for each in seen if each["check"] not in NOT_HERE]
    assert here == [
        ("KV transfer", "unknown"),
        ("workers", "ok"),
        ("workers", "ok"),
        ("routes", "ok"),
        ("models", "ok"),
        ("tokens", "ok"),
        ("structured output", "unknown"),
        ("prefix cache", "ok"),
        ("objectives", "ok"),
        ("objectives", "ok"),
        ("requests", "ok"),
    ]
    assert result.code == 0
    elsewhere = [each for each in seen if each["check"] in NOT_HERE]
    assert [each["check"] for each in elsewhere] == list(NOT_HERE)
    assert all(each["message"].startswith("not checked here: ") for each in elsewhere)


def test_prefill_and_decode_workers_are_asked_for_their_requests(tmp_path: Path) -> None:
    blueprint = disaggregated()
    with (
        ProcessGroup() as processes,
        LocalServing(build_plan(blueprint), blueprint, tmp_path, processes) as serving,
    ):
        state = published(serving, *serving.start(lambda _: None))
        results = list(verify_served(served_here(blueprint, state), state.engines))
        assert not_ok(results) == []
        requests_seen = [each.message for each in results if each.check == "requests"]
        assert ["/prefill: received" in requests_seen[0], "/decode: received" in requests_seen[1]] == [
            True
        ] * 2
        victim = next(each for each in serving.first_workers() if each.role == "prefill")
        serving.kill(victim)
        (lost,) = not_ok(list(verify_served(served_here(blueprint, state), state.engines)))
    assert (lost.check, lost.severity) == ("workers", "error")
    assert "qwen3-32b-main/prefill: 1 of 2 are ready; prefill 1 of qwen3-32b-main: " in lost.message
    assert (lost.command or "").startswith("tail ")


def asked(url: str, method: str = "GET") -> tuple[int, str]:
    """Status and text of a response."""
    response = urllib3.request(method, url, timeout=240)
    return response.status, response.data.decode()


def test_a_worker_shows_its_health_and_metrics_and_nothing_else(served: Served) -> None:
    workers = [each for each in served.serving.served_processes() if each.process == "worker"]
    identities = set()
    for worker in workers:
        assert asked(f"{worker.url}{worker.health_path}")[0] == 200
        status, page = asked(f"{worker.url}/metrics")
        assert status == 200
        identities |= {line.split()[0] for line in page.splitlines() if line.startswith(UPTIME)}
        assert asked(f"{worker.url}/metadata")[0] == 404
        assert asked(f"{worker.url}/metrics", "POST")[0] == 404
        assert Path(worker.log_file).is_file()
    assert len(identities) == len(workers) == 2, "each page is that of another worker"


def test_without_a_run_the_command_says_how_to_start_one(tmp_path: Path) -> None:
    result = verified(tmp_path)
    assert result.code != 0
    assert "no platform is ready; start it with `blueprints local up" in result.err


def test_the_run_of_another_blueprint_is_refused(served: Served, tmp_path: Path) -> None:
    with running(published(served.serving, served.endpoint), tmp_path):
        result = verified(tmp_path, name="p5en-disaggregated")
    assert result.code != 0
    assert "quickstart-g6e runs, with the deployments qwen3-8b-main" in result.err


@pytest.mark.parametrize("option", ["--endpoint", "--model"])
def test_local_checks_every_model(option: str, tmp_path: Path) -> None:
    result = verified(tmp_path, option, "http://127.0.0.1:1")
    assert result.code != 0
    assert "--local checks every model of the run" in result.err
