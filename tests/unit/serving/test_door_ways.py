"""Queues, streaming jobs and the canary have models of their own at the front door, and keys for these."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
import yaml

from inference_blueprints.loading import load_blueprint, parse_blueprint
from inference_blueprints.resources import blueprints_directory
from inference_blueprints.serving.front_door.ways import key_owners
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.spec.types import Blueprint
from inference_contracts.door_configuration import DoorModel
from inference_contracts.errors import BlueprintError
from inference_contracts.platform_keys import PLATFORM_TEAM, KeyOwner
from tests.unit.serving.test_door_plan import TEXT, changed, door_of
from tests.unit.serving.test_door_size import with_own_queue, with_queue

ADS = blueprints_directory() / "ads-reference.yaml"
_TEAMS = ("shop", "support", "research")


def internal(change: Callable[[dict[str, Any]], object]) -> dict[str, DoorModel]:
    """Return the models of the platform's own parts, by name."""
    return {each.name: each for each in door_of(change).configuration.models if each.caller}


def targets(model: DoorModel) -> dict[str, int | None]:
    return {each.cluster: each.requests_at_once for each in model.targets}


def with_canary(spec: dict[str, Any]) -> None:
    spec["observability"] = {"canary": {"everyMinutes": 1}}


def test_a_queue_with_a_deployment_of_its_own_is_not_shed_there() -> None:
    """Red if the door limits workers that nobody else uses: batch keeps as many requests there as it can."""
    models = internal(with_own_queue)
    assert list(models) == ["batch:qwen3-8b"]
    model = models["batch:qwen3-8b"]
    assert (model.caller, model.priority, model.teams) == ("batch", 0, _TEAMS)
    assert targets(model) == {"qwen3-8b-night": None}
    # The queue states no longest answer, so one without a maximum may fill the context.
    assert model.default_output_tokens == model.context_length
    assert (model.prices.input_token, model.prices.output_token) == (100, 400)
    assert "qwen3-8b-night" in {each.name for each in door_of(with_own_queue).clusters}


def test_a_queue_beside_real_time_is_shed_first() -> None:
    """Red if batch has places at a shared deployment that interactive requests cannot have back."""
    door = door_of(with_queue).configuration
    public = {each.cluster: each.requests_at_once for each in door.models[0].targets}
    assert targets(internal(with_queue)["batch:qwen3-8b"]) == public
    assert None not in public.values()


def _ads() -> Blueprint:
    """Return the shipped blueprint with all ways in, behind a front door."""
    document = yaml.safe_load(ADS.read_text(encoding="utf-8"))
    spec, door = document["spec"], yaml.safe_load(TEXT)["spec"]
    spec["network"] = {**spec.get("network", {}), **door["network"]}
    spec["frontDoor"] = {}
    for model in spec["models"]:
        model["rates"] = {"usdPerMillionInputTokens": 0.05, "usdPerMillionOutputTokens": 0.4}
    return parse_blueprint(json.dumps(document), str(ADS)).blueprint


def test_all_ways_of_a_platform() -> None:
    """Red if the door sends batch's requests to workers that the capacity shift has taken away."""
    blueprint = _ads()
    door = build_plan(blueprint).front_door
    assert door is not None
    models = {each.name: each for each in door.configuration.models if each.caller == "batch"}
    assert {name: [*targets(each)] for name, each in models.items()} == {
        "batch:product": ["product-steady"],
        "batch:product/offpeak": ["product-offpeak"],
    }
    # Nobody else uses it, and callers from outside share the other one.
    assert targets(models["batch:product/offpeak"]) == {"product-offpeak": None}
    assert None not in targets(models["batch:product"]).values()
    [stream] = [each for each in door.configuration.models if each.caller == "streaming"]
    [job] = blueprint.spec.streaming
    assert (stream.name, stream.priority, stream.teams) == (f"streaming:{job.name}", 50, (job.team,))
    assert stream.default_output_tokens == job.answer.max_tokens
    owners = {(each.caller, each.name): each for each in key_owners(blueprint.spec)}
    assert owners["streaming", job.name].teams == (job.team,)
    # As the queue states it.
    assert models["batch:product"].default_output_tokens == 600
    assert owners["batch", ""].models == ("batch:product", "batch:product/offpeak")


def test_the_canary_asks_each_model_and_the_platform_pays() -> None:
    models = internal(with_canary)
    assert list(models) == ["canary:qwen3-8b", "canary:qwen3-4b"]
    assert {each.teams for each in models.values()} == {(PLATFORM_TEAM,)}
    assert {each.priority for each in models.values()} == {100}
    door = door_of(with_canary).configuration
    assert PLATFORM_TEAM not in [each.name for each in door.teams]
    assert not [each for each in door.budgets if each.name == PLATFORM_TEAM]


def test_each_program_has_keys_for_its_models_and_teams() -> None:
    """Red if a key is missing, or one may use the models of another program."""

    def both(spec: dict[str, Any]) -> None:
        with_queue(spec)
        spec["batch"]["queues"].append({**spec["batch"]["queues"][0], "name": "hourly", "model": "qwen3-4b"})
        with_canary(spec)

    assert key_owners(changed(both).spec) == (
        KeyOwner("batch", "", _TEAMS, ("batch:qwen3-8b", "batch:qwen3-4b")),
        KeyOwner("canary", "", (PLATFORM_TEAM,), ("canary:qwen3-8b", "canary:qwen3-4b")),
    )
    assert key_owners(load_blueprint(str(ADS)).blueprint.spec) == ()


@pytest.mark.parametrize("name", ["batch:qwen3-8b", "canary:x", "streaming:clicks"])
def test_a_public_name_is_not_one_of_the_platform(name: str) -> None:
    def named(spec: dict[str, Any]) -> None:
        spec["frontDoor"]["models"][0]["aliases"] = [name]

    with pytest.raises(BlueprintError) as refused:
        changed(named)
    [problem] = refused.value.problems
    assert problem.path == "spec.frontDoor.models[0].aliases[0]"
    assert (
        f"got '{name}', but names that begin with 'batch:', 'streaming:', 'canary:' are those"
        in problem.message
    )


def test_no_team_has_the_name_of_the_platform() -> None:
    def named(spec: dict[str, Any]) -> None:
        spec["teams"].append({"name": PLATFORM_TEAM, "monthlyBudgetUsd": 1})

    with pytest.raises(BlueprintError) as refused:
        changed(named)
    assert [each.path for each in refused.value.problems] == ["spec.teams[3].name"]
