"""The plan and the picture show what the capacity shift moves."""

from __future__ import annotations

import copy

import yaml

from inference_blueprints.loading import parse_blueprint
from inference_blueprints.report.picture.picture import picture
from inference_blueprints.report.plan.plan_tables import plan_tables
from inference_blueprints.report.plan.sections.cost import PLATFORM_COST
from inference_blueprints.report.plan.sections.scaling import SCALING
from inference_blueprints.report.plan.sections.shift import SHIFT
from inference_blueprints.report.plan.summary import summarise
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.spec.source import shipped
from inference_blueprints.spec.types import Blueprint

ELASTIC = yaml.safe_load(shipped()["elastic-g6e"].read_text("utf-8"))


def with_shift(action: str | None) -> Blueprint:
    document = copy.deepcopy(ELASTIC)
    spec = document["spec"]
    if action:
        rates = {"usdPerMillionInputTokens": 1, "usdPerMillionOutputTokens": 1}
        principals = ["arn:aws:iam::111122223333:role/ads"]
        spec["teams"] = [{"name": "ads", "principals": principals, "monthlyBudgetUsd": 100}]
        spec["batch"] = {"queues": [{"name": "nightly", "model": spec["models"][0]["name"], "rates": rates}]}
        spec["capacityShift"] = {"action": action, "safetyPercent": 25}
    return parse_blueprint(yaml.safe_dump(document), "own.yaml").blueprint


def test_plan_picture_and_price_show_the_section() -> None:
    blueprint = with_shift("shift")
    plan = build_plan(blueprint)
    summary = summarise(blueprint, plan)
    (table,) = (each for each in plan_tables(summary) if each.title == "Capacity shift")
    ((workers, _, floor, carried, places),) = table.rows
    (scaling,) = (each for each in summary[SCALING] if each.name in workers)
    assert floor == f"{scaling.workers_least} to {scaling.workers_most}"
    assert float(carried) > 1
    assert places == "0 to 16"
    assert "carried out" in table.notes[0]
    assert "25 %" in table.notes[0]
    assert "lends idle capacity to batch" in picture(blueprint, plan)
    assert "capacity shift" in summary[PLATFORM_COST].not_priced


def test_observing_is_said() -> None:
    blueprint = with_shift("observe")
    plan = build_plan(blueprint)
    (table,) = (each for each in plan_tables(summarise(blueprint, plan)) if each.title == "Capacity shift")
    assert "not carried out" in table.notes[0]
    assert "only records" in picture(blueprint, plan)


def test_without_the_section_nothing_is_said() -> None:
    blueprint = with_shift(None)
    plan = build_plan(blueprint)
    assert summarise(blueprint, plan)[SHIFT] == ()
    assert "Capacity shift" not in picture(blueprint, plan)
