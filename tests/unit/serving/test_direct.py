"""The stack without a router: the engines' own servers behind the load balancer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import yaml

from inference_blueprints.loading import parse_blueprint
from inference_blueprints.resources import blueprints_directory
from inference_blueprints.serving.command_line import flag_values
from inference_blueprints.serving.engines import ENGINES
from inference_blueprints.serving.engines.vllm import VLLM_SERVER, Vllm
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.serving.stacks import STACKS
from inference_blueprints.serving.stacks.request_filter import command_behind_filter
from inference_blueprints.serving.types import DeploymentPlan
from inference_blueprints.spec.types import STACK_OF_ENGINE, Blueprint
from inference_contracts.errors import BlueprintError

DIRECT: dict[str, Any] = {"direct": {}}
METRICS = ("tokensInFlight", "queueLength", "kvCacheUse", "timeToFirstToken")


def deployment_of(blueprint: Blueprint) -> DeploymentPlan:
    """Return the only deployment."""
    return build_plan(blueprint).models[0].deployments[0]


def elastic_queries(stack: str, metric: str) -> dict[str, str]:
    """Return the queries of elastic workers of a shipped blueprint on another stack, by their names."""
    document = yaml.safe_load((blueprints_directory() / "elastic-g6e.yaml").read_text("utf-8"))
    [model] = document["spec"]["models"]
    model["stack"] = {stack: {}}
    model.pop("routing", None)
    model["objectives"] = {"timeToFirstTokenP90Ms": 2000}
    model["deployments"][0]["aggregated"]["scaledBy"] = {"load": {"metric": metric}}
    scaling = (
        deployment_of(parse_blueprint(yaml.safe_dump(document), "own.yaml").blueprint).workers[0].scaling
    )
    assert scaling is not None
    return {trigger.name: trigger.query for trigger in scaling.triggers}


@pytest.mark.parametrize("engine", sorted(ENGINES))
def test_the_first_stack_that_runs_an_engine_is_its_default(engine: str) -> None:
    first = next(name for name, stack in STACKS.items() if engine in stack.frameworks)
    assert STACK_OF_ENGINE.get(engine, "dynamo") == first


def test_every_engine_with_a_server_of_its_own_runs_without_a_router() -> None:
    assert set(STACKS["direct"].frameworks) == {name for name, each in ENGINES.items() if each.own_server}


def test_requests_are_routed_by_the_load_balancer_if_the_file_does_not_choose(
    make_blueprint: Callable[..., Blueprint],
) -> None:
    assert make_blueprint(stack=DIRECT).spec.models[0].routing.chosen == "leastRequests"
    assert make_blueprint(stack={"llmD": {}}).spec.models[0].routing.chosen == "kvAware"


def test_workers_are_the_entry_point(make_blueprint: Callable[..., Blueprint]) -> None:
    deployment = deployment_of(make_blueprint(stack=DIRECT))
    [worker] = deployment.processes
    assert (deployment.entry_point, deployment.workers) == (worker, (worker,))
    assert (worker.role, worker.replicas, worker.ports[0].number) == ("worker", 2, 8000)
    assert worker.probes.readiness.path == "/health"


def test_a_worker_has_the_command_of_llm_d_s_workers(make_blueprint: Callable[..., Blueprint]) -> None:
    [worker] = deployment_of(make_blueprint(stack=DIRECT)).workers
    [other] = deployment_of(make_blueprint(stack={"llmD": {}})).workers
    assert (command_behind_filter(worker), worker.arguments) == (other.command, other.arguments)


def test_a_worker_leaves_the_load_balancer_before_it_ends_its_answers(
    make_blueprint: Callable[..., Blueprint],
) -> None:
    [worker] = deployment_of(make_blueprint(stack=DIRECT)).workers
    streams = int(flag_values(worker.arguments)["shutdown-timeout"])
    assert streams > 0
    assert worker.termination_grace_seconds > worker.pre_stop_seconds + streams > streams


def test_a_server_that_drops_its_answers_gets_the_signal_after_the_longest(
    make_blueprint: Callable[..., Blueprint], monkeypatch: pytest.MonkeyPatch
) -> None:
    [before] = deployment_of(make_blueprint(stack=DIRECT)).workers
    monkeypatch.setattr(Vllm, "own_server", replace(VLLM_SERVER, finishes_answers=False))
    [worker] = deployment_of(make_blueprint(stack=DIRECT)).workers
    streams = int(flag_values(worker.arguments)["shutdown-timeout"])
    assert worker.pre_stop_seconds == before.pre_stop_seconds + streams
    assert worker.termination_grace_seconds == before.termination_grace_seconds


@pytest.mark.parametrize("metric", METRICS)
def test_elastic_workers_follow_the_metrics_of_their_own_server(metric: str) -> None:
    queries = elastic_queries("direct", metric)
    assert queries == elastic_queries("llmD", metric)
    guard = queries.pop("requests-in-flight")
    assert guard.startswith("sum(vllm:num_requests_running{")
    assert all("vllm:" in query for query in queries.values())


@pytest.mark.parametrize("metric", ["kvCacheUse", "timeToFirstToken"])
def test_a_load_that_the_server_does_not_report_is_refused(
    metric: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    elastic_queries("direct", metric)
    monkeypatch.setattr(Vllm, "cache_use", None)
    monkeypatch.setattr(Vllm, "own_server", replace(VLLM_SERVER, latency=None))
    with pytest.raises(BlueprintError, match=f"got '{metric}', but the server of 'vllm' does not report it"):
        elastic_queries("direct", metric)


def test_a_server_that_does_not_report_its_cache_is_measured_by_its_requests(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Vllm, "cache_use", None)
    queries = elastic_queries("direct", "tokensInFlight")
    assert queries["tokens-in-flight"].endswith(f" * {queries['requests-in-flight']}")
