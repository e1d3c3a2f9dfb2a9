"""What a run tries with a configuration, and what it says when it cannot."""

from __future__ import annotations

import dataclasses

import pytest
import yaml

from inference_blueprints.resources import blueprints_directory
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.spec.types import Blueprint
from inference_contracts.door_configuration import DoorConfiguration
from inference_local.front_door.door_scenario import Asked, Shed, door_scenario


@pytest.fixture(scope="module")
def planned() -> DoorConfiguration:
    text = (blueprints_directory() / "front-door.yaml").read_text(encoding="utf-8")
    blueprint = Blueprint.model_validate(yaml.safe_load(text))
    door = build_plan(blueprint).front_door
    assert door is not None
    return door.configuration


def test_the_smallest_budget_is_lowered_and_said(planned: DoorConfiguration) -> None:
    scenario = door_scenario(planned)
    assert scenario.spender is not None
    assert scenario.spender.asked == Asked("research", "qwen/qwen3-8b")
    # 150 requests of 24 tokens at 100 and 25 tokens at 400 nano-dollars.
    assert (scenario.spender.limit_nano, scenario.spender.is_daily) == (150 * (2400 + 10000), True)
    [budget] = [each for each in scenario.configuration.budgets if each.name == "research"]
    assert budget.nano_per_day == scenario.spender.limit_nano
    rows = {(each.workers, each.setting, each.planned, each.here) for each in scenario.replacements}
    assert rows == {
        ("front door, budget of research", "usdPerDay", "10", "0.00186"),
        ("front door, target qwen3-4b-main", "requests at once", rows_of(planned), "20"),
    }
    others = [each for each in scenario.configuration.budgets if each.name != "research"]
    assert others == [each for each in planned.budgets if each.name != "research"]


def rows_of(configuration: DoorConfiguration) -> str:
    [target] = next(model for model in configuration.models if model.name == "qwen/qwen3-4b-later").targets
    return str(target.requests_at_once)


def test_a_small_budget_stays(planned: DoorConfiguration) -> None:
    budgets = tuple(
        dataclasses.replace(each, nano_per_day=1000) if each.name == "research" else each
        for each in planned.budgets
    )
    scenario = door_scenario(dataclasses.replace(planned, budgets=budgets))
    assert scenario.spender is not None
    assert scenario.spender.limit_nano == 1000
    assert [each.setting for each in scenario.replacements] == ["requests at once"]


def test_the_budget_of_a_streaming_job_stays(planned: DoorConfiguration) -> None:
    """Its events would wait for a budget that only this run has lowered."""
    own = dataclasses.replace(
        planned.models[0], name="streaming:clicks", aliases=(), teams=("research",), caller="streaming"
    )
    scenario = door_scenario(dataclasses.replace(planned, models=(*planned.models, own)))
    assert scenario.spender is None or scenario.spender.asked.team != "research"
    assert [each for each in scenario.configuration.budgets if each.name == "research"] == [
        each for each in planned.budgets if each.name == "research"
    ]


def test_who_spends_sends_nothing_else(planned: DoorConfiguration) -> None:
    """What another part of the load spends would be missing when the budget is spent."""
    scenario = door_scenario(planned)
    assert scenario.shed == Shed(Asked("shop", "qwen/qwen3-4b"), Asked("shop", "qwen/qwen3-4b-later"))
    assert scenario.steady == Asked("shop", "qwen/qwen3-4b")
    assert scenario.canary == Asked("shop", "qwen/qwen3-8b")
    assert scenario.notes == ()


def test_every_name_of_a_filled_target_knows_that_it_is_small(planned: DoorConfiguration) -> None:
    scenario = door_scenario(planned)
    small = [
        target.requests_at_once
        for model in scenario.configuration.models
        for target in model.targets
        if target.cluster == "qwen3-4b-main"
    ]
    assert small == [20, 20]


def test_what_cannot_be_tried_is_said(planned: DoorConfiguration) -> None:
    alone = dataclasses.replace(
        planned,
        teams=planned.teams[:1],
        models=(dataclasses.replace(planned.models[0], targets=planned.models[0].targets[:1]),),
    )
    scenario = door_scenario(alone)
    assert (scenario.spender, scenario.canary, scenario.shed) == (None, None, None)
    assert scenario.steady == Asked("shop", "qwen/qwen3-8b")
    assert [text.split(":")[0] for text in scenario.notes] == [
        "No budget was reached",
        "No canary was tried",
        "No request was refused for lack of room",
    ]
    assert scenario.configuration == alone
