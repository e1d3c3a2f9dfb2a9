"""The workers of batch queues: pods that are well, give their shards back, and may do little."""

from __future__ import annotations

import copy

import pytest

from inference_catalog import ecs_hosts, node_facts
from tests.charts.batch_worker import BOTH, CHART, FIXED, RELEASE, SCALED
from tests.charts.llm_d import of_kind
from tests.charts.renderings import Manifest, Render, Staged, run_helm


@pytest.fixture(params=sorted(BOTH))
def workers(request: pytest.FixtureRequest) -> str:
    """Return the name of workers of a fixed number, then of scaled ones."""
    return str(request.param)


@pytest.fixture
def rendered(render: Render, workers: str) -> list[Manifest]:
    return render(BOTH[workers], RELEASE, CHART)


def test_helm_finds_nothing_to_complain_of(workers: str, staged: Staged) -> None:
    result = run_helm("lint", "--strict", staged(CHART), values=BOTH[workers])
    assert result.returncode == 0, result.stdout


def test_a_pod_asks_for_what_plans_count(rendered: list[Manifest]) -> None:
    [deployment] = of_kind(rendered, "Deployment")
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    asked = container["resources"]["requests"]
    assert (asked["cpu"], asked["memory"]) == (
        str(ecs_hosts.POD_VCPU),
        f"{ecs_hosts.POD_MEMORY_GIB}Gi",
    )


def test_pods_have_time_to_give_their_shards_back(rendered: list[Manifest]) -> None:
    [deployment] = of_kind(rendered, "Deployment")
    pod = deployment["spec"]["template"]["spec"]
    # The worker's own default is 60 s (BATCH_DRAIN_SECONDS).
    assert pod["terminationGracePeriodSeconds"] > 60
    [budget] = of_kind(rendered, "PodDisruptionBudget")
    assert budget["spec"]["selector"]["matchLabels"] == deployment["spec"]["selector"]["matchLabels"]
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    assert budget["spec"]["selector"]["matchLabels"].items() <= labels.items()


def test_pods_keep_off_accelerators_and_hold_no_right_of_the_cluster(rendered: list[Manifest]) -> None:
    [deployment] = of_kind(rendered, "Deployment")
    pod = deployment["spec"]["template"]["spec"]
    [term] = pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][
        "nodeSelectorTerms"
    ]
    assert {"key": node_facts.POOL_LABEL, "operator": "DoesNotExist"} in term["matchExpressions"]
    assert pod["automountServiceAccountToken"] is False
    [container] = pod["containers"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


@pytest.mark.parametrize("workers", ["qwen3-8b.batch-scaled"], indirect=True)
def test_only_keda_says_how_many_scaled_workers_there_are(rendered: list[Manifest]) -> None:
    [deployment] = of_kind(rendered, "Deployment")
    assert "replicas" not in deployment["spec"]
    [scaled] = of_kind(rendered, "ScaledObject")
    assert scaled["spec"]["scaleTargetRef"] == {"name": deployment["metadata"]["name"]}
    assert (scaled["spec"]["minReplicaCount"], scaled["spec"]["maxReplicaCount"]) == (0, 12)
    [trigger] = scaled["spec"]["triggers"]
    # A worker that still has a shard is needed, although its message is not visible.
    assert trigger["metadata"]["scaleOnInFlight"] == "true"
    assert trigger["metadata"]["queueLength"] == "4"
    environment = deployment["spec"]["template"]["spec"]["containers"][0]["env"]
    assert {"name": "BATCH_QUEUE_URL", "value": trigger["metadata"]["queueURL"]} in environment
    [authentication] = of_kind(rendered, "TriggerAuthentication")
    assert trigger["authenticationRef"] == {"name": authentication["metadata"]["name"]}


@pytest.mark.parametrize("workers", ["qwen3-8b.batch"], indirect=True)
def test_nothing_scales_workers_of_a_fixed_number(rendered: list[Manifest]) -> None:
    assert of_kind(rendered, "ScaledObject") == []
    [deployment] = of_kind(rendered, "Deployment")
    assert deployment["spec"]["replicas"] == 2


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"replicas": 0}, "replicas"),
        ({"scaling": SCALED["scaling"]}, "oneOf"),
        ({"scaling": {"min": 0}}, "scaling"),
        ({"image": ""}, "image"),
        ({"environment": {}}, "environment"),
        ({"environment": {"lower": "x"}}, "lower"),
        ({"architecture": "riscv"}, "architecture"),
        ({"other": 1}, "other"),
    ],
)
def test_values_that_mean_nothing_are_refused(change: Manifest, words: str, staged: Staged) -> None:
    values = {**copy.deepcopy(FIXED), **change}
    result = run_helm("template", RELEASE, staged(CHART), values=values)
    assert result.returncode != 0
    assert words in result.stderr
