"""Price of a cluster of ECS: tasks on Fargate instead of a control plane and system nodes."""

from __future__ import annotations

import pytest

from inference_blueprints.figures import CostItem
from inference_blueprints.loading import parse_blueprint
from inference_blueprints.planning.summary import summarise
from inference_blueprints.resources import blueprints_directory
from inference_blueprints.serving.plan import build_plan


def _items(cluster: str) -> dict[str, CostItem]:
    text = (blueprints_directory() / "quickstart-g6e.yaml").read_text(encoding="utf-8")
    blueprint = parse_blueprint(text.replace('{eks: {version: "1.35"}}', cluster), "test").blueprint
    return {item.name: item for item in summarise(blueprint, build_plan(blueprint)).platform_cost.items}


def test_frontends_and_the_discovery_store_are_tasks() -> None:
    items = _items("{ecs: {}}")
    assert "EKS control plane" not in items
    assert "system nodes" not in items
    # Two frontends of 1 vCPU and 2 GiB, three members of 0.5 vCPU and 1 GiB, 730 hours.
    assert items["frontends on Fargate"].usd_per_month == pytest.approx(
        2 * (0.04048 + 2 * 0.004445) * 730, abs=0.01
    )
    member = 0.5 * 0.04048 + 0.004445
    assert items["discovery store on Fargate"].usd_per_month == pytest.approx(3 * member * 730, abs=0.01)


def test_an_unknown_price_is_shown_as_unknown() -> None:
    items = _items("{ecs: {}}")
    assert items["fee of ECS Managed Instances"].usd_per_month is None
    assert "fee of ECS Managed Instances" not in _items("{ecs: {managedInstances: never}}")


def test_parts_that_do_not_belong_to_the_cluster_cost_the_same() -> None:
    on_eks, on_ecs = _items('{eks: {version: "1.35"}}'), _items("{ecs: {}}")
    shared = on_eks.keys() & on_ecs.keys()
    assert {"pool l40s", "NAT gateways", "load balancer"} <= shared
    assert [on_eks[name] for name in shared] == [on_ecs[name] for name in shared]


def test_direct_models_have_no_frontends_and_no_discovery_store() -> None:
    text = (blueprints_directory() / "image-generation.yaml").read_text(encoding="utf-8")
    blueprint = parse_blueprint(text.replace('{eks: {version: "1.35"}}', "{ecs: {}}"), "test").blueprint
    items = {item.name for item in summarise(blueprint, build_plan(blueprint)).platform_cost.items}
    assert "KMS key" in items
    assert not {each for each in items if "frontends" in each or "discovery" in each}
