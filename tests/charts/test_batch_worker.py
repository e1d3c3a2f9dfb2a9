"""The workers of batch queues: pods that are well, give their shards back, and may do little."""

from __future__ import annotations

import copy
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from inference_blueprints import resources
from inference_blueprints.catalog import batch_worker_sizes, placement
from inference_blueprints.local.manifests import validate_manifest
from inference_blueprints.targets.eks.batch_worker_values import QueueScaling, batch_worker_values
from tests.charts.test_dynamo_model import of_kind

Manifest = dict[str, Any]
Run = Callable[..., subprocess.CompletedProcess[str]]

CHART = resources.charts_directory() / "batch-worker"
REVIEWED = Path(__file__).parent / "rendered"
RELEASE = "qwen3-8b.batch"
QUEUE = "https://sqs.us-west-2.amazonaws.com/111122223333/shards"


def values_of(workers: int | QueueScaling) -> Manifest:
    return batch_worker_values(
        image="111122223333.dkr.ecr.us-west-2.amazonaws.com/batch-worker:0a1b2c3d",
        environment={
            "BATCH_BUCKET": "batch-of-the-platform",
            "BATCH_ENDPOINT": "http://qwen3-8b.try.internal",
            "BATCH_MODEL": "qwen3-8b",
            "BATCH_QUEUE_URL": QUEUE,
            "BATCH_SHARDS_AT_ONCE": "4",
        },
        workers=workers,
    )


FIXED = values_of(2)
SCALED = values_of(QueueScaling(min=0, max=12, messages=4, queue_url=QUEUE, region="us-west-2"))
#: Values by the file of what was reviewed.
BOTH = {"qwen3-8b.batch": FIXED, "qwen3-8b.batch-scaled": SCALED}


@pytest.fixture(params=sorted(BOTH))
def reviewed(request: pytest.FixtureRequest) -> str:
    """Return the name of workers of a fixed number, then of scaled ones."""
    return str(request.param)


@pytest.fixture
def rendered(run_helm: Run, reviewed: str) -> list[Manifest]:
    words = ("--namespace", "inference", "--kube-version", "1.35")
    result = run_helm("template", RELEASE, str(CHART), *words, values=BOTH[reviewed])
    assert result.returncode == 0, result.stderr
    return [manifest for manifest in yaml.safe_load_all(result.stdout) if manifest]


def test_helm_finds_nothing_to_complain_of(run_helm: Run, reviewed: str) -> None:
    result = run_helm("lint", "--strict", str(CHART), values=BOTH[reviewed])
    assert result.returncode == 0, result.stdout


def test_the_render_is_the_one_that_was_reviewed(rendered: list[Manifest], reviewed: str) -> None:
    text = (REVIEWED / f"{reviewed}.yaml").read_text(encoding="utf-8")
    assert rendered == list(yaml.safe_load_all(text))


def test_every_object_fits_its_schema(rendered: list[Manifest]) -> None:
    for manifest in rendered:
        assert validate_manifest(manifest, "1.35") == []


def test_a_pod_asks_for_what_plans_count(rendered: list[Manifest]) -> None:
    [deployment] = of_kind(rendered, "Deployment")
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    asked = container["resources"]["requests"]
    assert (asked["cpu"], asked["memory"]) == (
        str(batch_worker_sizes.POD_VCPU),
        f"{batch_worker_sizes.POD_MEMORY_GIB}Gi",
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
    assert {"key": placement.POOL_LABEL, "operator": "DoesNotExist"} in term["matchExpressions"]
    assert pod["automountServiceAccountToken"] is False
    [container] = pod["containers"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


@pytest.mark.parametrize("reviewed", ["qwen3-8b.batch-scaled"], indirect=True)
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


@pytest.mark.parametrize("reviewed", ["qwen3-8b.batch"], indirect=True)
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
def test_values_that_mean_nothing_are_refused(run_helm: Run, change: Manifest, words: str) -> None:
    values = {**copy.deepcopy(FIXED), **change}
    result = run_helm("template", RELEASE, str(CHART), values=values)
    assert result.returncode != 0
    assert words in result.stderr
