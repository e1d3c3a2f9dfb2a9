"""KV cache on the nodes' NVMe: how much there is for it, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import inference_catalog as catalog
from inference_blueprints.serving.checks.serving_checks import serving_findings
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.spec.types import Blueprint
from inference_contracts.errors import Finding

Make = Callable[..., Blueprint]
PLACE = ("spec", "models", 0, "kvCache", "nvme")
ONE = [{"name": "main", "aggregated": {"pool": "l40s", "replicas": 1, "tensorParallelSize": 1}}]


def on_nvme(make_blueprint: Make, gib: int | None = None, **changes: Any) -> Blueprint:
    """Return quickstart with KV cache on NVMe: so much, or all that there is."""
    cache = {"hostMemoryGib": 40, "nvme": {"gib": gib} if gib else {}}
    changes = {"instance_types": ["g6e.8xlarge"], "deployments": ONE} | changes
    return make_blueprint(kvCache=cache, **changes)


def of_nvme(blueprint: Blueprint) -> list[Finding]:
    return [each for each in serving_findings(blueprint) if each.path[:5] == PLACE]


def disk_gib(blueprint: Blueprint) -> int:
    [worker] = build_plan(blueprint).models[0].deployments[0].workers
    return worker.resources.ephemeral_storage_mib // 1024


def test_without_a_size_it_is_what_the_node_has_left(make_blueprint: Make) -> None:
    nvme_gib = (catalog.instance_type("g6e.8xlarge").local_nvme_gb or 0) * 10**9 / 2**30
    # A tenth is kubelet's, a fiftieth the file system's, 40 GiB are images.
    assert disk_gib(on_nvme(make_blueprint)) == pytest.approx(0.88 * nvme_gib - 40, abs=1)
    assert of_nvme(on_nvme(make_blueprint)) == []


def test_workers_of_a_node_share_its_nvme(make_blueprint: Make) -> None:
    alone = [{"name": "main", "aggregated": {"pool": "l40s", "replicas": 1, "tensorParallelSize": 4}}]
    four = disk_gib(on_nvme(make_blueprint, instance_types=["g6e.12xlarge"]))
    assert disk_gib(on_nvme(make_blueprint, instance_types=["g6e.12xlarge"], deployments=alone)) == (
        pytest.approx(4 * four, abs=4)
    )


def test_the_smallest_type_of_a_pool_decides(make_blueprint: Make) -> None:
    both = disk_gib(on_nvme(make_blueprint, instance_types=["g6e.8xlarge", "g6e.4xlarge"]))
    assert both == disk_gib(on_nvme(make_blueprint, instance_types=["g6e.4xlarge"]))
    assert both < disk_gib(on_nvme(make_blueprint))


def test_what_an_error_says_would_fit_does(make_blueprint: Make) -> None:
    [finding] = of_nvme(on_nvme(make_blueprint, 60_000))
    assert finding.severity == "error"
    assert finding.path == (*PLACE, "gib")
    assert finding.message.startswith("got 60000, but a worker of 'main' has ")
    maximum = int(finding.message.rpartition("set at most ")[2])
    assert of_nvme(on_nvme(make_blueprint, maximum)) == []
    assert [each.severity for each in of_nvme(on_nvme(make_blueprint, maximum + 1))] == ["error"]


def test_no_more_than_the_memory_before_it_is_doubted(make_blueprint: Make) -> None:
    [finding] = of_nvme(on_nvme(make_blueprint, 40))
    assert finding.severity == "warning"
    assert "set at least 80" in finding.message
    assert of_nvme(on_nvme(make_blueprint, 80)) == []


def test_a_node_without_nvme_is_no_place_for_it(make_blueprint: Make) -> None:
    small = {"huggingFace": "Qwen/Qwen3-0.6B"}
    workload = {"inputTokens": 300, "outputTokens": 50, "peakRequestsPerSecond": 0.5}
    blueprint = make_blueprint(
        instance_types=["g5g.8xlarge"],
        disk_gib=500,
        deployments=ONE,
        engine={"vllm": {"args": {"dtype": "half"}}},
        weights=small,
        workload=workload,
        kvCache={"hostMemoryGib": 20, "nvme": {}},
    )
    [finding] = [each for each in of_nvme(blueprint) if each.severity == "error"]
    assert "whose g5g.8xlarge has no NVMe for pods: it has no NVMe disk" in finding.message


def test_a_snapshot_of_images_takes_the_nvme_from_pods(make_blueprint: Make) -> None:
    document = on_nvme(make_blueprint).model_dump(by_alias=True, exclude_none=True)
    document["spec"]["pools"][0]["imageAcceleration"] = {"ebsSnapshot": {"id": "snap-0123456789abcdef0"}}
    document["spec"]["pools"][0]["disk"] = {"sizeGib": 500}
    [finding] = of_nvme(Blueprint.model_validate(document))
    assert "with an image snapshot, files of pods are on EBS" in finding.message
