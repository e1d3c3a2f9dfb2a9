"""The front door of a plan says what its blueprint says: names, shares, prices, budgets and callers."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
import yaml

from inference_blueprints.loading import parse_blueprint
from inference_blueprints.resources import blueprints_directory
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.serving.traffic import deployment_traffic
from inference_blueprints.serving.types.front_door import DoorPlan
from inference_blueprints.spec.types import Blueprint
from inference_contracts.door_configuration import NANO, DoorBudget, DoorConfiguration

TEXT = (blueprints_directory() / "front-door.yaml").read_text(encoding="utf-8")
QUICKSTART = (blueprints_directory() / "quickstart-g6e.yaml").read_text(encoding="utf-8")
STS = "https://0a1b2c3d-0000-4000-8000-000000000000.tokens.sts.global.api.aws"


def changed(change: Callable[[dict[str, Any]], object]) -> Blueprint:
    """Return the shipped blueprint with a changed `spec`."""
    document = yaml.safe_load(TEXT)
    change(document["spec"])
    # JSON is YAML too, and quotes the keys `x` and `y` of a public key.
    return parse_blueprint(json.dumps(document), "own.yaml").blueprint


def door_of(change: Callable[[dict[str, Any]], object] = lambda spec: spec) -> DoorPlan:
    door = build_plan(changed(change)).front_door
    assert door is not None
    return door


def budgets_of(change: Callable[[dict[str, Any]], object]) -> dict[tuple[str, str], DoorBudget]:
    budgets = door_of(change).configuration.budgets
    found: dict[tuple[str, str], DoorBudget] = {(each.scope, each.name): each for each in budgets}
    assert len(found) == len(budgets)
    return found


def test_a_platform_without_the_section_has_no_door() -> None:
    assert build_plan(parse_blueprint(QUICKSTART, "q.yaml").blueprint).front_door is None


def test_the_door_leads_to_the_deployments_of_the_plan() -> None:
    door = door_of()
    assert door.host_name == "api.models.example.com"
    clusters = {cluster.name: (cluster.model, cluster.deployment) for cluster in door.clusters}
    assert clusters["qwen3-8b-canary"] == ("qwen3-8b", "canary")
    used = {target.cluster for model in door.configuration.models for target in model.targets}
    assert used == clusters.keys()


def test_the_policy_reads_what_the_plan_writes() -> None:
    """Red if a field of the plan is no JSON, or is read back as something else."""
    configuration = door_of().configuration
    assert DoorConfiguration.from_json(configuration.to_json()) == configuration


def test_shares_are_small_whole_numbers_in_the_ratio_of_the_weights() -> None:
    [chat, *_] = door_of().configuration.models
    assert [(each.cluster, each.weight) for each in chat.targets] == [
        ("qwen3-8b-stable", 9),
        ("qwen3-8b-canary", 1),
    ]


def test_a_target_without_a_deployment_is_divided_by_accelerators() -> None:
    """Red if a share of a whole model goes to one of its deployments only."""

    def two_models(spec: dict[str, Any]) -> None:
        spec["models"][0]["deployments"][1]["aggregated"]["replicas"] = 4
        spec["pools"][0]["nodes"]["max"] = 9
        spec["models"][1]["rates"] = spec["models"][0]["rates"]
        targets = [{"model": "qwen3-8b", "weight": 80}, {"model": "qwen3-4b", "weight": 20}]
        spec["frontDoor"]["models"][0]["to"] = targets

    [chat, *_] = door_of(two_models).configuration.models
    weights = {each.cluster: each.weight for each in chat.targets}
    whole = sum(weights.values())
    assert weights["qwen3-4b-main"] / whole == pytest.approx(0.2)
    assert weights["qwen3-8b-stable"] / whole == pytest.approx(0.8 * 2 / 6)
    assert weights["qwen3-8b-canary"] / whole == pytest.approx(0.8 * 4 / 6)


def test_a_target_without_a_share_stays_for_requests_that_have_no_room() -> None:
    def spill_over(spec: dict[str, Any]) -> None:
        spec["frontDoor"]["models"][0]["to"][1]["weight"] = 0

    [chat, *_] = door_of(spill_over).configuration.models
    assert [each.weight for each in chat.targets] == [1, 0]


def test_an_answer_without_a_maximum_is_as_long_as_the_file_says_or_as_the_context_allows() -> None:
    """Red if an answer is cut at a length that nobody has written into the file."""

    def default_of(change: Callable[[dict[str, Any]], object]) -> tuple[int, int]:
        model = next(each for each in door_of(change).configuration.models if "small" in each.aliases)
        return model.default_output_tokens, model.context_length

    def lengths(output: Any, **stated: int) -> Callable[[dict[str, Any]], object]:
        def change(spec: dict[str, Any]) -> None:
            name = next(each for each in spec["frontDoor"]["models"] if "small" in each.get("aliases", ()))
            name.update(stated)
            for model in spec["models"]:
                if model["name"] == name["to"][0]["model"]:
                    model["workload"]["outputTokens"] = output

        return change

    assert default_of(lengths({"mean": 150, "max": 900}))[0] == 900
    default, context = default_of(lengths(150))
    assert default == context
    assert default_of(lengths(150, defaultOutputTokens=333))[0] == 333


def test_the_shortest_context_of_the_targets_counts() -> None:
    """Red if a request fits one target of its model and not the other."""

    def two_models(spec: dict[str, Any]) -> None:
        spec["models"][1]["rates"] = spec["models"][0]["rates"]
        spec["frontDoor"]["models"][0]["to"].append({"model": "qwen3-4b"})

    [chat, small, *_] = door_of(two_models).configuration.models
    assert chat.context_length == small.context_length == 7168


def test_without_names_each_model_has_its_own() -> None:
    def no_names(spec: dict[str, Any]) -> None:
        spec["frontDoor"] = {}

    models = door_of(no_names).configuration.models
    assert [(model.name, [each.cluster for each in model.targets]) for model in models] == [
        ("qwen3-8b", ["qwen3-8b-stable", "qwen3-8b-canary"]),
        ("qwen3-4b", ["qwen3-4b-main"]),
    ]


def test_prices_are_nano_dollars_a_token() -> None:
    [chat, small, *_] = door_of().configuration.models
    assert (chat.prices.input_token, chat.prices.output_token) == (100, 400)
    assert (small.prices.input_token, small.prices.output_token) == (50, 200)


def test_an_image_costs_the_tokens_that_batch_counts() -> None:
    def images(spec: dict[str, Any]) -> None:
        spec["models"] = [
            {
                "name": "pictures",
                "weights": {
                    "huggingFace": "Tongyi-MAI/Z-Image-Turbo",
                    "revision": "f332072aa78be7aecdf3ee76d5c247082da564a6",
                },
                "task": "images",
                "engine": {"vllmOmni": {}},
                "workload": {"images": {"size": "1024x768", "steps": 9}, "peakRequestsPerSecond": 0.2},
                "rates": {"usdPerMillionInputTokens": 1, "usdPerMillionOutputTokens": 5},
                "deployments": [
                    {"name": "main", "aggregated": {"pool": "l40s", "replicas": 2, "tensorParallelSize": 1}}
                ],
            }
        ]
        spec["frontDoor"] = {}

    [pictures] = door_of(images).configuration.models
    assert pictures.prices.image == (1024 // 16) * (768 // 16) * 5000
    assert pictures.targets[0].requests_at_once is None


def test_the_monthly_budget_of_a_team_is_its_limit_once() -> None:
    budgets = budgets_of(lambda spec: spec)
    assert budgets["team", "support"].nano_per_month == 500 * NANO
    research = budgets["team", "research"]
    assert (research.nano_per_month, research.nano_per_day) == (100 * NANO, 10 * NANO)
    assert (research.requests_per_minute, research.tokens_per_minute) == (600, 2_000_000)
    assert budgets["project", "shop/*"].nano_per_month is None
    assert budgets["key", "*"].requests_per_minute == 1200
    assert budgets["model", "qwen/qwen3-4b"].enforce == "after"


def test_a_team_may_be_counted_after_its_requests() -> None:
    def after(spec: dict[str, Any]) -> None:
        spec["frontDoor"]["budgets"] = [{"team": "shop", "usdPerMonth": 2000, "enforce": "after"}]

    budgets = budgets_of(after)
    assert budgets["team", "shop"].enforce == "after"
    assert budgets["team", "shop"].nano_per_month == 2000 * NANO
    assert budgets["team", "support"].enforce == "before"


def test_tokens_of_sts_say_who_calls_and_others_name_a_team() -> None:
    def callers(spec: dict[str, Any]) -> None:
        spec["teams"][0]["principals"] = ["arn:aws:iam::111122223333:role/Shop"]
        key = {"kty": "EC", "crv": "P-256", "x": "AQAB", "y": "AQAB"}
        spec["frontDoor"]["budgets"] = []
        spec["frontDoor"]["identity"] = {
            "iam": {"accounts": [{"issuer": STS}]},
            "oidc": [
                {
                    "issuer": "https://login.example.com",
                    "audience": "door",
                    "teamClaim": "groups",
                    "keysUrl": "https://login.example.com/keys",
                },
                {"issuer": "https://b.example.com", "audience": "door", "keys": {"keys": [key]}},
            ],
        }

    door = door_of(callers)
    assert door.configuration.api_keys is False
    issuers = door.configuration.issuers
    assert [(each.team_claim, each.is_sts) for each in issuers] == [
        ("groups", False),
        ("team", False),
        ("sub", True),
    ]
    assert issuers[2].audience == "https://api.models.example.com"
    assert [each.issuer for each in door.key_sets] == [each.issuer for each in issuers]
    assert [each.url for each in door.key_sets] == [
        "https://login.example.com/keys",
        None,
        f"{STS}/.well-known/jwks.json",
    ]
    assert door.configuration.teams[0].principals == ("arn:aws:iam::111122223333:role/Shop",)


def test_the_loss_of_the_store_is_bounded_in_nano_dollars() -> None:
    def admit(spec: dict[str, Any]) -> None:
        spec["frontDoor"] |= {"onStoreLoss": "admit", "storeLossUsd": 2.5}

    configuration = door_of(admit).configuration
    assert (configuration.on_store_loss, configuration.store_loss_nano) == ("admit", 2_500_000_000)


def test_the_peak_of_a_model_is_divided_by_the_shares_of_the_door() -> None:
    """Red if a canary is planned for half of the requests, and gets a tenth of them."""
    spec = changed(lambda spec: spec).spec
    model = spec.models[0]
    rates = [deployment_traffic(spec, model, each).requests_per_second for each in model.deployments]
    assert rates == [pytest.approx(3.6), pytest.approx(0.4)]


def test_deployments_without_a_share_are_planned_by_their_accelerators() -> None:
    def spill_over(spec: dict[str, Any]) -> None:
        spec["frontDoor"]["models"][0]["to"][1]["weight"] = 0
        spec["models"][0]["workload"]["peakRequestsPerSecond"] = 3

    spec = changed(spill_over).spec
    model = spec.models[0]
    rates = [deployment_traffic(spec, model, each).requests_per_second for each in model.deployments]
    assert rates == [pytest.approx(3.0), pytest.approx(1.5)]
