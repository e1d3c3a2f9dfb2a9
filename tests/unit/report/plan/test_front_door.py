"""The front door in the plan: every key of the section is shown, and what it costs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from inference_blueprints.loading import parse_blueprint
from inference_blueprints.report.plan.plan_tables import plan_tables
from inference_blueprints.report.plan.section import Label, PlanSummary
from inference_blueprints.report.plan.sections import SECTIONS
from inference_blueprints.report.plan.sections.cost import PLATFORM_COST
from inference_blueprints.report.plan.sections.front_door import FRONT_DOOR
from inference_blueprints.report.plan.summary import as_dict, summarise
from inference_blueprints.resources import blueprints_directory
from inference_blueprints.serving.plan import build_plan

TEXT = (blueprints_directory() / "front-door.yaml").read_text(encoding="utf-8")
_STS = "https://0a1b2c3d-0000-4000-8000-000000000000.tokens.sts.global.api.aws"
#: A value of its own for every key.
SECTION: dict[str, Any] = {
    "host": "gate",
    "identity": {
        "apiKeys": {"maxDays": 77, "rotationHours": 13},
        "iam": {"accounts": [{"issuer": _STS}], "audience": "for-iam"},
        "oidc": [
            {
                "issuer": "https://login.example.com/a",
                "audience": "for-oidc",
                "teamClaim": "department",
                "keysUrl": "https://login.example.com/a/keys",
            },
        ],
    },
    "models": [
        {
            "name": "qwen/qwen3-8b",
            "aliases": ["gpt-4o-mini"],
            "to": [
                {"model": "qwen3-8b", "deployment": "stable", "weight": 75},
                {"model": "qwen3-8b", "deployment": "canary", "weight": 25},
            ],
            "teams": ["support"],
            "priority": 61,
            "defaultOutputTokens": 777,
        }
    ],
    "budgets": [
        {
            "team": "shop",
            "usdPerDay": 111,
            "requestsPerMinute": 222,
            "tokensPerMinute": 333_333,
            "requestsAtOnce": 44,
        },
        {"project": "shop/search", "usdPerMonth": 1234, "enforce": "after"},
    ],
    "timeZone": "Asia/Tokyo",
    "onStoreLoss": "admit",
    "storeLossUsd": 19.5,
    "replicas": 5,
    "usage": {"prompts": "onRequest", "retentionDays": 801, "objectLock": "governance"},
    "oldHostNames": {"models": {"until": "2027-01-31T00:00:00Z"}},
}
#: How a value is written in tables, if not as it is.
SHOWN = {"gate": "gate.models.example.com", 75: "0.75", 25: "0.25", 333_333: "333,333", 1234: "1,234"}
SHOWN |= {"admit": "admitted up to 19.50 USD", 19.5: "19.50", "onRequest": "for keys that ask for it"}


def summary_of(section: dict[str, Any] | None = None, cluster: dict[str, Any] | None = None) -> PlanSummary:
    document = yaml.safe_load(TEXT)
    spec = document["spec"]
    spec["teams"][0]["principals"] = ["arn:aws:iam::111122223333:role/Shop"]
    spec["frontDoor"] = spec["frontDoor"] if section is None else section
    spec["cluster"] = cluster or spec["cluster"]
    blueprint = parse_blueprint(json.dumps(document), "own.yaml").blueprint
    return summarise(blueprint, build_plan(blueprint))


def tables(summary: PlanSummary) -> str:
    found = [each for each in plan_tables(summary) if "front door" in each.title.lower()]
    assert len(found) == 4
    return "\n".join(" | ".join(row) for each in found for row in (*each.rows, each.notes))


def leaves(value: Any) -> Iterator[Any]:
    """Yield the values of all keys, except the names of deployments, which stand behind their model's."""
    if isinstance(value, dict):
        for each in value.values():
            yield from leaves(each)
    elif isinstance(value, list):
        for each in value:
            yield from leaves(each)
    else:
        yield value


def test_every_key_is_in_the_tables() -> None:
    """Red if a new key of the section is in no table."""
    text = tables(summary_of(SECTION))
    assert [value for value in leaves(SECTION) if str(SHOWN.get(value, value)) not in text] == []


def test_every_key_is_in_json() -> None:
    found = as_dict(summary_of(SECTION))["frontDoor"]
    values = {*leaves(found)}
    written = {75: 0.75, 25: 0.25, "gate": "https://gate.models.example.com/v1"}
    written |= {"2027-01-31T00:00:00Z": "models until 2027-01-31T00:00:00Z"}
    written |= {name: f"qwen3-8b/{name}" for name in ("stable", "canary")}
    parts = [written.get(value, value) for value in leaves(SECTION) if value not in ("qwen3-8b", "shop")]
    assert [value for value in parts if value not in values] == []
    assert found["budgets"][0] == {
        "scope": "team",
        "name": "support",
        "usdPerDay": None,
        "usdPerMonth": 500.0,
        "requestsPerMinute": None,
        "tokensPerMinute": None,
        "requestsAtOnce": None,
        "enforce": "before",
    }


def test_a_plan_without_a_door_says_nothing_of_one() -> None:
    text = (blueprints_directory() / "quickstart-g6e.yaml").read_text(encoding="utf-8")
    blueprint = parse_blueprint(text, "q.yaml").blueprint
    summary = summarise(blueprint, build_plan(blueprint))
    assert summary[FRONT_DOOR] is None
    assert [each.title for each in plan_tables(summary) if "front door" in each.title.lower()] == []


def test_the_store_costs_its_least_and_its_units() -> None:
    summary = summary_of()
    door = summary[FRONT_DOOR]
    assert door is not None
    units = door.store_units_per_second * 3600 * 730 / 1e6
    assert door.store_usd_per_month == pytest.approx(0.1 * 0.084 * 730 + units * 0.0023, abs=0.01)
    items = {item.name: item.usd_per_month for item in summary[PLATFORM_COST].items}
    assert items["store of budgets"] == door.store_usd_per_month
    assert "front door on Fargate" not in items


def test_tasks_have_a_price_and_pods_need_room_on_the_system_nodes() -> None:
    on_ecs = summary_of(cluster={"ecs": {}})
    door = on_ecs[FRONT_DOOR]
    assert door is not None
    assert door.usd_per_month == pytest.approx(2 * (0.04048 + 2 * 0.004445) * 730, abs=0.01)
    items = {item.name: item.usd_per_month for item in on_ecs[PLATFORM_COST].items}
    assert items["front door on Fargate"] == door.usd_per_month
    few, many = (
        next(item for item in summary_of(section)[PLATFORM_COST].items if "Karpenter" in item.name)
        for section in ({**SECTION, "replicas": 20}, {**SECTION, "replicas": 30})
    )
    vcpus = [int(item.assumption.split()[0]) for item in (few, many)]
    assert vcpus[1] - vcpus[0] == 30 - 20


def test_the_short_plan_names_address_size_and_callers() -> None:
    lines = [
        text for each in SECTIONS for label, text in each.in_short(summary_of()) if label is Label.FRONT_DOOR
    ]
    assert lines == [
        "https://api.models.example.com/v1: 2 replicas with 1 vCPU, qwen/qwen3-8b; qwen/qwen3-4b; "
        "qwen/qwen3-4b-later",
        "callers by apiKeys; 6 budgets",
    ]


def test_budgets_limit_requests_of_the_door() -> None:
    """Red if the plan says that budgets limit nothing without batch."""
    lines = [text for each in SECTIONS for _, text in each.in_short(summary_of())]
    assert "budgets of teams limit nothing without batch" not in lines
    assert any(
        line.startswith("Budgets of 2,600 USD a month limit requests of the front door") for line in lines
    )
