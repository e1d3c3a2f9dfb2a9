"""The operating system of a pool follows from its workers and from the data of the catalogue."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from inference_blueprints.loading import parse_blueprint
from inference_blueprints.resources import blueprints_directory
from inference_blueprints.serving.plan import build_plan
from inference_catalog.catalogue import shipped
from inference_contracts.errors import BlueprintError

PREFILL, DECODE = {"pool": "h200", "replicas": 2}, {"pool": "h200", "replicas": 1}


def text(topology: dict[str, Any], **pool: Any) -> str:
    """Return a blueprint with one pool of p5en, which has EFA, and one deployment."""
    document = yaml.safe_load((blueprints_directory() / "p5en-disaggregated.yaml").read_text())
    document["spec"]["pools"][0].update({"nodes": {"max": 8}, **pool})
    document["spec"]["pools"].append({"name": "spare", "instanceTypes": ["m7i.large"], "nodes": {"max": 1}})
    document["spec"]["models"][0]["deployments"] = [{"name": "main", **topology}]
    return str(yaml.safe_dump(document))


def disaggregated(prefill: int, decode: int) -> dict[str, Any]:
    roles = {
        "prefill": {**PREFILL, "tensorParallelSize": prefill},
        "decode": {**DECODE, "tensorParallelSize": decode},
    }
    return {"disaggregated": roles}


def system(topology: dict[str, Any], **pool: Any) -> str:
    plan = build_plan(parse_blueprint(text(topology, **pool), "a.yaml").blueprint)
    assert plan.node_systems["spare"] == "bottlerocket"
    return plan.node_systems["h200"]


@pytest.mark.parametrize(
    ("prefill", "decode", "chosen"),
    [
        # Amazon EKS User Guide, "Manage EFA devices on Amazon EKS": only AL2023 aligns interfaces and GPUs.
        (1, 4, "al2023"),
        (4, 8, "al2023"),
        # All 8 GPUs of a p5en: the worker has all interfaces.
        (8, 8, "bottlerocket"),
    ],
)
def test_workers_on_a_part_of_a_node_that_move_kv_cache_over_efa_get_al2023(
    prefill: int, decode: int, chosen: str
) -> None:
    assert system(disaggregated(prefill, decode)) == chosen


def test_without_efa_nothing_is_paired() -> None:
    assert system(disaggregated(1, 4), efa=False) == "bottlerocket"


def test_an_aggregated_worker_sends_no_kv_cache() -> None:
    assert system({"aggregated": {"pool": "h200", "replicas": 4, "tensorParallelSize": 1}}) == "bottlerocket"


def test_each_pool_has_its_own_operating_system() -> None:
    document = yaml.safe_load(text(disaggregated(4, 8)))
    [first, *_] = document["spec"]["pools"]
    document["spec"]["pools"].append({**first, "name": "whole"})
    document["spec"]["models"][0]["deployments"][0]["disaggregated"]["decode"]["pool"] = "whole"
    plan = build_plan(parse_blueprint(yaml.safe_dump(document), "a.yaml").blueprint)
    assert plan.node_systems == {"h200": "al2023", "whole": "bottlerocket", "spare": "bottlerocket"}


def one_model_on(instance_type: str, **pool: Any) -> str:
    """Return a blueprint with a small model on one pool."""
    document = yaml.safe_load((blueprints_directory() / "quickstart-g6e.yaml").read_text())
    document["spec"]["pools"][0].update({"instanceTypes": [instance_type], **pool})
    return str(yaml.safe_dump(document))


@pytest.mark.parametrize(
    ("instance_type", "chosen"),
    [
        # Bottlerocket's driver does not know G7's GPU (bottlerocket#4889). AL2023 has a second driver since
        # v20260917 and chooses at the first boot (amazon-eks-ami#2768).
        ("g7.2xlarge", "al2023"),
        ("g7e.2xlarge", "bottlerocket"),
    ],
)
def test_a_family_that_does_not_boot_one_system_gets_the_next(instance_type: str, chosen: str) -> None:
    blueprint = parse_blueprint(one_model_on(instance_type), "a.yaml").blueprint
    assert build_plan(blueprint).node_systems == {"l40s": chosen}


def test_the_pinned_image_of_al2023_has_the_driver_of_g7() -> None:
    system = shipped().operating_systems["al2023"]
    assert "v20260917" <= system.oldest <= system.version


def test_a_snapshot_and_a_family_that_bottlerocket_does_not_boot_fit_no_operating_system() -> None:
    text = one_model_on("g7.2xlarge", imageAcceleration={"ebsSnapshot": {}})
    with pytest.raises(BlueprintError) as caught:
        parse_blueprint(text, "a.yaml")
    [problem] = caught.value.problems
    assert problem.path == "spec.pools[0].imageAcceleration"
    assert "instance types of 'g7' do not boot Bottlerocket's image" in problem.message
    assert "set 'sociParallelPull: {}', or use another family" in problem.message


@pytest.mark.parametrize("snapshot", [{}, {"id": "snap-0a1b2c3d4e5f60718"}])
def test_a_snapshot_and_paired_workers_fit_no_operating_system(snapshot: dict[str, str]) -> None:
    fields = {"imageAcceleration": {"ebsSnapshot": snapshot}, "disk": {"sizeGib": 4096}}
    with pytest.raises(BlueprintError) as caught:
        parse_blueprint(text(disaggregated(4, 8), **fields), "a.yaml")
    [problem] = caught.value.problems
    assert problem.path == "spec.pools[0].imageAcceleration"
    assert problem.line
    # The decode worker has a whole node and is not named.
    assert "the workers 'qwen3-32b/main/prefill' move KV cache over EFA" in problem.message
    assert "set 'sociParallelPull: {}'" in problem.message
    assert system(disaggregated(8, 8), **fields) == "bottlerocket"
