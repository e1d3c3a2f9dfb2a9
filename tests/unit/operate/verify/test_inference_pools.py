"""Models on llm-d: their pools, and what their routers count."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from inference_blueprints.operate.check_results import CheckResult
from inference_blueprints.operate.verify.inference_pool_checks import members, picks
from inference_blueprints.operate.verify.kv_transfer_checks import kv_transfer
from inference_blueprints.operate.verify.verified_platform import RunningPlatform, VerifiedPlatform
from inference_blueprints.operate.verify.worker_checks import requests, workers
from tests.unit.operate.verify.recorded import RELEASE, RecordedCluster, conditions, pod

POOL_LABEL = "llm-d.ai/inference-pool"
ROUTERS = ("router-0", "router-1")
PAGE = (
    'llm_d_epp_ready_endpoints{name="qwen3-32b-main"} 13\n'
    'llm_d_epp_scheduler_attempts_total{status="success",target_model_name="qwen3-32b"} 9\n'
    'llm_d_epp_disagg_decision_total{decision_type="decode-only",model_name="qwen3-32b"} 3\n'
    'llm_d_epp_disagg_decision_total{decision_type="prefill-decode",model_name="qwen3-32b"} 6\n'
)


def on_llm_d(spec: dict[str, Any]) -> None:
    spec["models"][0]["stack"] = {"llmD": {}}


@pytest.fixture
def llm_d(platform: Callable[..., VerifiedPlatform], cluster: RecordedCluster) -> RunningPlatform:
    """The shipped disaggregated platform on llm-d, as it should be."""
    pods = [pod(name, "router") for name in ROUTERS]
    for role, count in {"prefill": 12, "decode": 1}.items():
        for number in range(count):
            pods.append(pod(f"{role}-{number}", role))
            pods[-1]["metadata"]["labels"] |= {POOL_LABEL: RELEASE, "llm-d.ai/role": role}
    cluster.objects["pods"] = pods
    cluster.objects["inferencepools.inference.networking.k8s.io"] = [
        {
            "metadata": {"name": RELEASE, "namespace": "inference"},
            "spec": {"selector": {"matchLabels": {POOL_LABEL: RELEASE}}},
        }
    ]
    cluster.metrics = {f"{name}:9090": PAGE for name in ROUTERS}
    return RunningPlatform(platform(on_llm_d), cluster)


def only(observations: Iterable[CheckResult]) -> CheckResult:
    (found,) = [each for each in observations if each.severity != "ok"]
    return found


@pytest.mark.parametrize(
    "check", [workers, members, picks, requests, kv_transfer], ids=lambda check: check.__name__
)
def test_nothing_is_wrong_with_a_healthy_platform(check: Any, llm_d: RunningPlatform) -> None:
    observations = list(check(llm_d))
    assert observations
    assert {each.severity for each in observations} == {"ok"}


def test_the_picks_are_told(llm_d: RunningPlatform) -> None:
    (found,) = picks(llm_d)
    assert found.message == f"{RELEASE}: 18 requests assigned to 13 workers, 12 with a prefill worker"


def test_a_dynamo_platform_has_none(running: RunningPlatform) -> None:
    assert [*members(running), *picks(running)] == []


def test_a_pool_that_is_missing(llm_d: RunningPlatform, cluster: RecordedCluster) -> None:
    cluster.objects["inferencepools.inference.networking.k8s.io"].clear()
    found = only(members(llm_d))
    assert "there is no InferencePool" in found.message
    assert found.command == "blueprints deploy a.yaml"


def test_workers_that_the_pool_does_not_select(llm_d: RunningPlatform, cluster: RecordedCluster) -> None:
    for each in cluster.objects["pods"]:
        if each["metadata"]["name"].startswith("prefill"):
            each["metadata"]["labels"][POOL_LABEL] = "another"
    assert "its pool has no ready prefill" in only(members(llm_d)).message


def test_workers_of_the_pool_that_are_not_ready(llm_d: RunningPlatform, cluster: RecordedCluster) -> None:
    cluster.objects["pods"][-1]["status"]["conditions"] = conditions(Ready="loading")
    assert "its pool has no ready decode" in only(members(llm_d)).message


@pytest.mark.parametrize("label", [None, "prefill"])
def test_a_worker_with_another_role_s_label(
    label: str | None, llm_d: RunningPlatform, cluster: RecordedCluster
) -> None:
    """The router's filters find no decode worker, and every request is refused."""
    labels = cluster.objects["pods"][-1]["metadata"]["labels"]
    labels["llm-d.ai/role"] = label
    assert f"decode-0: label llm-d.ai/role is {label!r}, not 'decode'" in only(members(llm_d)).message


def test_a_router_that_knows_fewer_workers_than_are_ready(
    llm_d: RunningPlatform, cluster: RecordedCluster
) -> None:
    cluster.metrics["router-1:9090"] = PAGE.replace("} 13", "} 11")
    found = only(picks(llm_d))
    assert found.severity == "error"
    assert "router-1 has 11 workers, 13 are ready" in found.message
    assert (found.command or "").endswith("--container picker router-1")


@pytest.mark.parametrize(
    ("change", "severity", "words"),
    [
        (("prefill-decode", "decode-only"), "error", "decode workers compute all prompts themselves"),
        (("success", "failure"), "error", "no request was assigned to a worker"),
        ((PAGE, ""), "unknown", "no metrics from router-0, router-1"),
        (
            ("llm_d_epp_disagg", 'llm_d_epp_scheduler_attempts_total{status="failure"} 2\nllm_d_epp_disagg'),
            "warning",
            "times no worker was found",
        ),
    ],
    ids=["no prefill", "no pick", "not counted", "some refused"],
)
def test_what_the_routers_count_is_judged(
    change: tuple[str, str], severity: str, words: str, llm_d: RunningPlatform, cluster: RecordedCluster
) -> None:
    cluster.metrics = {f"{name}:9090": PAGE.replace(*change) for name in ROUTERS}
    found = only(picks(llm_d))
    assert found.severity == severity
    assert words in found.message


def test_without_a_ready_router_nothing_is_known(llm_d: RunningPlatform, cluster: RecordedCluster) -> None:
    for each in cluster.objects["pods"][:2]:
        each["status"]["conditions"] = conditions(Ready="starting")
    assert only(picks(llm_d)).severity == "unknown"
