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
from inference_blueprints.catalog import placement
from inference_blueprints.local.manifests import validate_manifest
from inference_blueprints.serving.chart_values import chart_values
from tests.charts.test_dynamo_model import of_kind

CHART = resources.charts_directory() / "batch-worker"
REVIEWED = Path(__file__).parent / "rendered" / "qwen3-8b.batch.yaml"
RELEASE = "qwen3-8b.batch"
VALUES = chart_values(
    "batch-worker",
    image="111122223333.dkr.ecr.us-west-2.amazonaws.com/batch-worker:0a1b2c3d",
    replicas=2,
    environment={
        "BATCH_BUCKET": "batch-of-the-platform",
        "BATCH_ENDPOINT": "http://qwen3-8b.try.internal",
        "BATCH_MODEL": "qwen3-8b",
        "BATCH_QUEUE_URL": "https://sqs.us-west-2.amazonaws.com/111122223333/shards",
        "BATCH_SHARDS_AT_ONCE": "4",
    },
)

Manifest = dict[str, Any]
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def rendered(run_helm: Run) -> list[Manifest]:
    words = ("--namespace", "inference", "--kube-version", "1.35")
    result = run_helm("template", RELEASE, str(CHART), *words, values=VALUES)
    assert result.returncode == 0, result.stderr
    return [manifest for manifest in yaml.safe_load_all(result.stdout) if manifest]


def test_helm_finds_nothing_to_complain_of(run_helm: Run) -> None:
    result = run_helm("lint", "--strict", str(CHART), values=VALUES)
    assert result.returncode == 0, result.stdout


def test_the_render_is_the_one_that_was_reviewed(rendered: list[Manifest]) -> None:
    assert rendered == list(yaml.safe_load_all(REVIEWED.read_text(encoding="utf-8")))


def test_every_object_fits_its_schema(rendered: list[Manifest]) -> None:
    for manifest in rendered:
        assert validate_manifest(manifest, "1.35") == []


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


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"replicas": 0}, "replicas"),
        ({"image": ""}, "image"),
        ({"environment": {}}, "environment"),
        ({"environment": {"lower": "x"}}, "lower"),
        ({"architecture": "riscv"}, "architecture"),
        ({"other": 1}, "other"),
    ],
)
def test_values_that_mean_nothing_are_refused(run_helm: Run, change: Manifest, words: str) -> None:
    values = {**copy.deepcopy(VALUES), **change}
    result = run_helm("template", RELEASE, str(CHART), values=values)
    assert result.returncode != 0
    assert words in result.stderr
