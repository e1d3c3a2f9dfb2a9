"""Price of a cluster of ECS: tasks on Fargate instead of a control plane and system nodes."""

from __future__ import annotations

import pytest

from inference_blueprints.loading import parse_blueprint
from inference_blueprints.report.figures import CostItem
from inference_blueprints.report.plan.section import PlanSummary
from inference_blueprints.report.plan.sections.cost import PLATFORM_COST
from inference_blueprints.report.plan.sections.pools import POOLS
from inference_blueprints.report.plan.summary import summarise
from inference_blueprints.resources import blueprints_directory
from inference_blueprints.serving.plan import build_plan
from inference_catalog.ecs_hosts import ecs_host_image


def _summary(cluster: str, name: str = "quickstart-g6e") -> PlanSummary:
    text = (blueprints_directory() / f"{name}.yaml").read_text(encoding="utf-8")
    blueprint = parse_blueprint(text.replace('{eks: {version: "1.35"}}', cluster), "test").blueprint
    return summarise(blueprint, build_plan(blueprint))


def _items(cluster: str, name: str = "quickstart-g6e") -> dict[str, CostItem]:
    return {item.name: item for item in _summary(cluster, name)[PLATFORM_COST].items}


def test_frontends_and_the_discovery_store_are_tasks() -> None:
    items = _items("{ecs: {}}")
    assert "EKS control plane" not in items
    assert "system nodes" not in items
    # Two frontends of 1 vCPU and 2 GiB, three members of 0.5 vCPU and 1 GiB, 730 hours; and a
    # task of 0.25 vCPU and 0.5 GiB that keeps their users and roles.
    assert items["frontends on Fargate"].usd_per_month == pytest.approx(
        2 * (0.04048 + 2 * 0.004445) * 730, abs=0.01
    )
    member = 0.5 * 0.04048 + 0.004445
    store = 3 * member + member / 2
    assert items["discovery store on Fargate"].usd_per_month == pytest.approx(store * 730, abs=0.01)


def test_an_unknown_price_is_shown_as_unknown() -> None:
    items = _items("{ecs: {}}")
    assert items["fee of ECS Managed Instances"].usd_per_month is None
    assert "fee of ECS Managed Instances" not in _items("{ecs: {managedInstances: never}}")
    assert "fee of ECS Managed Instances" not in _items("{ecs: {}}", "inf2"), "its hosts are a group"


def test_hosts_boot_an_image_of_ecs_and_not_that_of_eks() -> None:
    """Bug: the plan named Bottlerocket's release for EKS, and counted the size of its volume."""
    [managed] = _summary("{ecs: {}}")[POOLS]
    [group] = _summary("{ecs: {managedInstances: never}}")[POOLS]
    assert (managed.node_image, managed.root_volume_gib) == ("chosen by ECS", 0)
    assert group.node_image == f"ECS-optimized AL2023 {ecs_host_image().version}"
    assert group.root_volume_gib == ecs_host_image().root_volume_gib
    assert (
        _items("{ecs: {managedInstances: never}}")["EBS volumes of pool l40s"].assumption == "2 x 230 GiB gp3"
    )


def test_parts_that_do_not_belong_to_the_cluster_cost_the_same() -> None:
    on_eks, on_ecs = _items('{eks: {version: "1.35"}}'), _items("{ecs: {}}")
    # Volumes have room for another operating system.
    shared = (on_eks.keys() & on_ecs.keys()) - {"EBS volumes of pool l40s"}
    assert {"pool l40s", "NAT gateways", "load balancer"} <= shared
    assert [on_eks[name] for name in shared] == [on_ecs[name] for name in shared]


def test_direct_models_have_no_frontends_and_no_discovery_store() -> None:
    items = _items("{ecs: {}}", "image-generation").keys()
    assert "KMS key" in items
    assert not {each for each in items if "frontends" in each or "discovery" in each}
