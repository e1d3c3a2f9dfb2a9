"""The plan says who replaces broken nodes, and what happens to slow ones."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest
import yaml

import inference_catalog as catalog
from inference_blueprints.loading import parse_blueprint
from inference_blueprints.report.picture.picture import picture
from inference_blueprints.report.plan.plan_tables import plan_tables
from inference_blueprints.report.plan.sections.cost import PLATFORM_COST
from inference_blueprints.report.plan.sections.repairs import summarise_repairs
from inference_blueprints.report.plan.summary import summarise
from inference_blueprints.serving.checks.support_checks import reboot_findings
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.spec.source import shipped
from inference_blueprints.spec.types import Blueprint

BASE = yaml.safe_load(shipped()["quickstart-g6e"].read_text("utf-8"))


def changed(health: dict[str, Any] | None, **pool: Any) -> Blueprint:
    """Return the quickstart with GPU health and other keys of its pool."""
    document = copy.deepcopy(BASE)
    document["spec"].setdefault("observability", {})
    if health is not None:
        document["spec"]["gpuHealth"] = health
    document["spec"]["pools"][0].update(pool)
    return parse_blueprint(yaml.safe_dump(document), "own.yaml").blueprint


def test_nothing_is_said_where_karpenter_repairs_and_nothing_looks_for_slow_gpus() -> None:
    assert list(summarise_repairs(changed(None).spec)) == []


def test_slow_neuron_devices_are_not_noticed() -> None:
    document = yaml.safe_load(shipped()["inf2"].read_text("utf-8"))
    document["spec"].update(observability={}, gpuHealth={"action": "replace"})
    document["spec"]["pools"][0]["repairedBy"] = "gpuHealth"
    (found,) = summarise_repairs(parse_blueprint(yaml.safe_dump(document), "own.yaml").blueprint.spec)
    assert "drained, then" in found.broken
    assert found.slow == "not noticed"


@pytest.mark.parametrize(
    ("health", "pool", "broken", "slow"),
    [
        ({"action": "observe"}, {}, "Karpenter terminates it", "recorded"),
        ({"action": "replace"}, {"repairedBy": "gpuHealth"}, "drained, then", "drained, then"),
        ({"action": "replace", "slowGpus": False}, {"repairedBy": "gpuHealth"}, "drained", "not noticed"),
        ({"action": "observe"}, {"repairedBy": "gpuHealth"}, "recorded", "recorded"),
        (
            {"action": "replace", "rebootsPerNodePerDay": 1},
            {"repairedBy": "gpuHealth"},
            "drained, then rebooted if that mends it, else replaced",
            "drained, then replaced",
        ),
        ({"rebootsPerNodePerDay": 1}, {}, "reboots it if that clears its XID", "recorded"),
        ({}, {"repairedBy": "nobody"}, "until people replace it", "recorded"),
        (None, {"repairedBy": "nvSentinel"}, "NVSentinel that you install", "not noticed"),
        (
            {"action": "replace"},
            {"repairedBy": "gpuHealth", "purchase": {"reservation": {"id": "cr-0a1b2c3d"}}},
            "into an unused place of the reservation",
            "into an unused place of the reservation",
        ),
    ],
)
def test_each_owner_is_told(
    health: dict[str, Any] | None, pool: dict[str, Any], broken: str, slow: str
) -> None:
    (found,) = summarise_repairs(changed(health, **pool).spec)
    assert found.owner == pool.get("repairedBy", "karpenter")
    assert broken in found.broken
    assert slow in found.slow


def limits(health: dict[str, Any] | None, **pool: Any) -> str:
    """Return what the plan says about the number of replacements."""
    blueprint = changed(health, **pool)
    tables = plan_tables(summarise(blueprint, build_plan(blueprint)))
    (table,) = (table for table in tables if table.title == "Broken and slow GPUs")
    return " ".join(table.notes)


def test_limits_are_said_where_nodes_are_replaced() -> None:
    health = {"action": "replace", "replacementsPerHour": 7, "maxUnhealthyPercent": 9}
    said = limits(health, repairedBy="gpuHealth")
    assert "at most 7 nodes an hour, and none while more than 9 %" in said
    assert "repairs one node of a pool." in said
    more = limits(health | {"rebootsPerNodePerDay": 2, "maxRepairingPercent": 8}, repairedBy="gpuHealth")
    assert "repairs 8 % of a pool's nodes, one always. A node is rebooted at most 2 times a day." in more
    assert "an hour" not in limits({"action": "observe"}, repairedBy="gpuHealth")
    assert "an hour" not in limits({"action": "observe"})


def test_broken_and_slow_nodes_have_their_own_columns() -> None:
    """Swapped columns would say that a broken node is not noticed."""
    blueprint = changed({"action": "replace", "slowGpus": False}, repairedBy="gpuHealth")
    tables = plan_tables(summarise(blueprint, build_plan(blueprint)))
    (table,) = (table for table in tables if table.title == "Broken and slow GPUs")
    (row,) = table.rows
    found = dict(zip((*table.names, *table.figures), row, strict=True))
    assert "drained" in found["a broken node"]
    assert found["a node with slow GPUs"] == "not noticed"


def test_the_price_counts_the_dashboard_of_operations() -> None:
    def dashboards(health: dict[str, Any] | None) -> float | None:
        blueprint = changed(health)
        items = summarise(blueprint, build_plan(blueprint))[PLATFORM_COST].items
        return next(item.usd_per_month for item in items if item.name == "dashboards")

    observed, watched = dashboards(None), dashboards({})
    assert observed is not None
    assert watched == pytest.approx(observed + catalog.service_prices().usd("dashboard"), abs=0.01)


def test_plan_and_picture_show_the_section() -> None:
    blueprint = changed({"action": "replace"}, repairedBy="gpuHealth")
    plan = build_plan(blueprint)
    summary = summarise(blueprint, plan)
    assert "Broken and slow GPUs" in {table.title for table in plan_tables(summary)}
    items = {item.name: item for item in summary[PLATFORM_COST].items}
    assert items["GPU health"].usd_per_month is None
    assert "GPU health" in summary[PLATFORM_COST].not_priced
    key = items["key of the topic of operations"]
    assert key.usd_per_month == pytest.approx(catalog.service_prices().usd("kms_key"), abs=0.01)
    assert "broken and slow GPUs" in picture(blueprint, plan)


def test_the_price_counts_the_series_of_workers() -> None:
    def recorded(blueprint: Blueprint) -> str:
        summary = summarise(blueprint, build_plan(blueprint))
        return next(i.assumption for i in summary[PLATFORM_COST].items if i.name == "metrics in CloudWatch")

    assert recorded(changed({})) != recorded(changed({"slowGpus": False}))
    assert recorded(changed({"slowGpus": False})) == recorded(changed(None))


def test_on_ecs_the_default_is_not_karpenter() -> None:
    document = copy.deepcopy(BASE)
    document["spec"] |= {"cluster": {"ecs": {}}, "observability": {}, "gpuHealth": {"action": "observe"}}
    blueprint = parse_blueprint(yaml.safe_dump(document), "own.yaml").blueprint
    (found,) = summarise_repairs(blueprint.spec)
    assert "ECS replaces a Managed Instance" in found.broken
    assert "Karpenter" not in found.broken


def test_reboots_by_karpenter_need_a_release_that_knows_them() -> None:
    """Red if a lock's Karpenter of 1.14 replaces what the blueprint wants rebooted, and nobody is told."""
    blueprint = changed({"rebootsPerNodePerDay": 1})
    assert list(reboot_findings(blueprint)) == []
    charts = dict(blueprint.releases.charts)
    charts["karpenter"] = replace(charts["karpenter"], version="1.14.1")
    (found,) = reboot_findings(blueprint.with_releases(replace(blueprint.releases, charts=charts)))
    assert found.path == ("spec", "gpuHealth", "rebootsPerNodePerDay")
    assert "release 1.14.1, which the lock names, reboots none" in found.message
