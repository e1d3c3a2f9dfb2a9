"""The size of the front door by hand, and what the checks say of peaks that it or its store cannot carry."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import yaml

from inference_blueprints.loading import parse_blueprint
from inference_blueprints.serving.front_door.sizing import (
    DoorSize,
    door_size,
    door_store_use,
    ways_through_the_door,
)
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.spec.types import Spec
from inference_catalog.door_loads import door_load, door_store_load
from inference_contracts.errors import BlueprintError
from tests.unit.serving.test_door_plan import TEXT, changed


def size_of(spec: Spec, door: Any) -> DoorSize:
    return door_size(spec, door.configuration.models)


def sized(change: Callable[[dict[str, Any]], object] = lambda spec: spec) -> tuple[Spec, DoorSize]:
    blueprint = changed(change)
    return blueprint.spec, size_of(blueprint.spec, build_plan(blueprint).front_door)


def busy(requests_per_second: float, teams: int = 3) -> Callable[[dict[str, Any]], None]:
    """Return a change to many short requests, which 4,000 workers answer."""

    def change(spec: dict[str, Any]) -> None:
        workers = {"pool": "l40s", "replicas": 4000, "tensorParallelSize": 1}
        spec["pools"] = [{"name": "l40s", "instanceTypes": ["g6e.48xlarge"], "nodes": {"max": 900}}]
        model = spec["models"][0]
        model["workload"] = {
            "inputTokens": 20,
            "outputTokens": 2,
            "peakRequestsPerSecond": requests_per_second,
        }
        model["deployments"] = [{"name": "stable", "aggregated": workers}]
        spec["models"] = [model]
        spec["teams"] = [{"name": f"t-{index}", "monthlyBudgetUsd": 1e6} for index in range(teams)]
        spec["frontDoor"] = {}

    return change


def after(spec: dict[str, Any]) -> None:
    """Count all teams after their requests."""
    spec["frontDoor"]["budgets"] = [
        {"team": team["name"], "usdPerMonth": team["monthlyBudgetUsd"], "enforce": "after"}
        for team in spec["teams"]
    ]


def problems(change: Callable[[dict[str, Any]], object]) -> list[str]:
    """Return what is said about `frontDoor`."""
    document = yaml.safe_load(TEXT)
    change(document["spec"])
    try:
        found = parse_blueprint(yaml.safe_dump(document, sort_keys=False), "own.yaml").warnings
    except BlueprintError as error:
        found = tuple(error.problems)
    return [f"{each.path}: {each.message}" for each in found if "frontDoor" in each.path]


def test_the_size_by_hand() -> None:
    _, size = sized()
    load = door_load()
    # Both models: 4 requests a second of 200 tokens, and 2 of 150.
    assert (size.requests_per_second, size.chunks_per_second) == (6, 1100)
    assert size.busy_vcpus == pytest.approx(
        (6 * load.microseconds_per_request + 1100 * load.microseconds_per_chunk) / 1e6
    )
    assert (size.replicas, size.vcpus, size.memory_mib) == (2, 1, 2048)


def test_half_of_the_processors_is_free_whatever_the_peak() -> None:
    """Red if a large peak gets replicas that are busy all the time."""
    for rate in (10, 1000, 3000):
        _, size = sized(busy(rate))
        assert size.replicas * size.vcpus >= 2 * size.busy_vcpus
        assert size.replicas >= 2
        # Not more than one replica too many.
        assert size.replicas == 2 or (size.replicas - 1) * size.vcpus < 2 * size.busy_vcpus


def test_replicas_of_the_file_count_first_and_too_few_are_said() -> None:
    def few(spec: dict[str, Any]) -> None:
        busy(6000)(spec)
        spec["frontDoor"]["replicas"] = 2
        after(spec)

    _, size = sized(few)
    assert (size.replicas, size.vcpus) == (2, 4)
    [found] = problems(few)
    needed = math.ceil(size.needed_vcpus / 4)
    assert found.startswith("spec.frontDoor.replicas: got 2 with 4 vCPUs each, but per second 6,000 requests")
    assert f"set {needed}, or remove it" in found


def test_images_in_prompts_need_room_in_a_body() -> None:
    def images(spec: dict[str, Any]) -> None:
        model = spec["models"][1]
        model["weights"] = {"huggingFace": "Qwen/Qwen3-VL-8B-Instruct", "revision": "v1"}
        model["stack"] = {"llmD": {"prefixScorer": "precise"}}
        model["media"] = {"imagesPerRequest": 4, "tokensPerImage": 1024}

    text, with_images = (sized(each)[1].largest_body_bytes for each in (lambda spec: spec, images))
    # 100,000 tokens of text, each up to 12 bytes of JSON.
    assert text >= 100_000 * 12
    assert with_images - text >= 4 * 8 * 1024 * 1024


def test_a_slot_reserves_what_limits_first() -> None:
    load = door_store_load()
    units = (
        load.microseconds_per_reservation + load.microseconds_per_settlement
    ) / load.microseconds_per_read
    assert load.units_per_reserved_request == pytest.approx(units)
    assert load.reserved_requests_per_slot == pytest.approx(30_000 / units)


def test_a_peak_above_what_the_slots_of_all_teams_reserve_is_refused_with_the_arithmetic() -> None:
    """Red if a budget is promised before each of 100,000 requests a second: no slot counts so many."""
    [found] = problems(busy(100_000))
    assert "got a peak of 100,000 requests per second of 3 teams" in found
    assert "a slot reserves and settles about 3,088 requests per second" in found
    assert "at most 30,000 units (ECPU) on AWS" in found
    assert "'enforce: after'" in found


def test_such_a_peak_fits_if_it_is_counted_afterwards() -> None:
    def counted_after(spec: dict[str, Any]) -> None:
        busy(100_000)(spec)
        after(spec)

    assert problems(counted_after) == []
    spec, size = sized(counted_after)
    use = door_store_use(size, spec)
    assert use.teams_that_reserve == 0
    # Each replica writes sums, five times a second for each team.
    assert use.units_per_second < size.replicas * 5 * 3 * 10


def test_a_peak_that_one_team_alone_could_not_make_is_said() -> None:
    [found] = problems(busy(5000))
    assert "one team may make at most 3,088 of the 5,000 requests per second" in found
    assert problems(busy(3000)) == []


def test_the_budget_of_a_busy_model_is_counted_afterwards() -> None:
    def of_a_model(spec: dict[str, Any]) -> None:
        busy(5000)(spec)
        after(spec)
        spec["frontDoor"]["budgets"].append({"model": "qwen3-8b", "usdPerDay": 100})

    [found] = problems(of_a_model)
    assert found.startswith("spec.frontDoor.budgets[3].model: got 'qwen3-8b' with 5,000 requests per second")

    def counted_after(spec: dict[str, Any]) -> None:
        of_a_model(spec)
        spec["frontDoor"]["budgets"][3]["enforce"] = "after"

    assert problems(counted_after) == []


def test_a_limit_below_one_request_is_said() -> None:
    def small(spec: dict[str, Any]) -> None:
        spec["frontDoor"]["budgets"] = [{"team": "shop", "usdPerDay": 0.0001, "tokensPerMinute": 1000}]

    per_day, per_minute = problems(small)
    # The cheapest model: 4 bytes for each of 800 tokens at 50 nano-dollars, and 1,000 tokens at 200.
    usd = (4 * 800 * 50 + 1000 * 200) / 1e9
    assert f"usdPerDay: got 0.0001, but a request of mean length reserves {usd:.7f}".rstrip("0") in per_day
    assert (
        f"tokensPerMinute: got 1000, but a request of mean length reserves {4 * 800 + 1000:,}" in per_minute
    )


def test_targets_with_other_contexts_are_said() -> None:
    def two_models(spec: dict[str, Any]) -> None:
        spec["models"][1]["rates"] = spec["models"][0]["rates"]
        spec["frontDoor"]["models"][0]["to"].append({"model": "qwen3-4b"})

    [found] = problems(two_models)
    assert "'qwen3-4b-main' accepts requests of at most 7,168 tokens, and another target 14,336" in found


def with_queue(spec: dict[str, Any], **queue: Any) -> None:
    """Add a queue of a request per second, and principals that may submit its jobs."""
    for team in spec["teams"]:
        team["principals"] = [f"arn:aws:iam::123456789012:role/{team['name']}"]
    spec["batch"] = {
        "queues": [
            {
                "name": "nightly",
                "model": "qwen3-8b",
                "workload": {"inputTokens": 2000, "outputTokens": 100},
                "load": {"requestsPerDay": 86_400},
                **queue,
            }
        ]
    }


def with_own_queue(spec: dict[str, Any]) -> None:
    """Add a queue with a deployment of its own."""
    night = {"name": "night", "aggregated": {"pool": "l40s", "replicas": 1, "tensorParallelSize": 1}}
    spec["models"][0]["deployments"].append(night)
    with_queue(spec, deployments=["night"])


def test_all_queues_pass_through_the_door() -> None:
    """Red if the requests of a queue are in no figure of the door that they pass through."""

    def passing(change: Callable[[dict[str, Any]], object]) -> list[str]:
        spec = changed(change).spec
        return [f"{model.name} {way.label}" for model, way in ways_through_the_door(spec)]

    expected = ["qwen3-8b real time", "qwen3-8b queue 'nightly'", "qwen3-4b real time"]
    assert passing(with_queue) == passing(with_own_queue) == expected


def test_queues_and_the_canary_count_in_the_size() -> None:
    """Red if a busy queue finds a door that is planned without it. Its answers are no streams."""
    (_, plain), (_, own) = sized(), sized(with_own_queue)
    assert own.requests_per_second == pytest.approx(plain.requests_per_second + 1)
    assert own.chunks_per_second == pytest.approx(plain.chunks_per_second + 1)
    # The workers of its deployment say how many they take, so the time that a request is open is assumed.
    assert own.open_requests == plain.open_requests + 60

    def with_canary(spec: dict[str, Any]) -> None:
        spec["observability"] = {"canary": {"everyMinutes": 1}}

    assert sized(with_canary)[1].requests_per_second == pytest.approx(plain.requests_per_second + 2 / 60)
