"""Blueprints of several sizes with their plans."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
import yaml

from benchmarks.harness.generated import generated_blueprint
from inference_blueprints.loading import load_blueprint
from inference_blueprints.report.picture.scene import Scene
from inference_blueprints.report.plan.section import PlanSummary
from inference_blueprints.report.plan.summary import summarise
from inference_blueprints.resources import blueprints_directory
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.spec.source import shipped
from inference_blueprints.spec.types import Blueprint

_EXISTING = {
    "vpcId": "vpc-0a1b2c3d",
    "vpcCidr": "10.20.0.0/16",
    "privateSubnetIds": ["subnet-0a1b2c3d", "subnet-0a1b2c3e", "subnet-0a1b2c3f"],
}


ChangedScene = Callable[[Callable[[dict[str, Any]], Any]], Scene]


def _scene(document: dict[str, Any]) -> Scene:
    blueprint = Blueprint.model_validate(document)
    return Scene(blueprint, build_plan(blueprint))


def _quickstart() -> dict[str, Any]:
    text = (blueprints_directory() / "quickstart-g6e.yaml").read_text(encoding="utf-8")
    document: dict[str, Any] = yaml.safe_load(text)
    return document


@pytest.fixture(scope="session")
def quickstart_document() -> dict[str, Any]:
    return _quickstart()


@pytest.fixture
def changed(quickstart_document: dict[str, Any]) -> ChangedScene:
    """Return the quickstart after a change to its spec."""

    def change(function: Callable[[dict[str, Any]], Any]) -> Scene:
        document = copy.deepcopy(quickstart_document)
        function(document["spec"])
        return _scene(document)

    return change


def _varied(pools: int, models: int) -> dict[str, Any]:
    """Return a blueprint with long names, S3 weights, spot, several types, an existing VPC and HTTPS."""
    document = generated_blueprint(pools, models)
    spec = document["spec"]
    spec["network"] = {
        "existing": _EXISTING,
        "certificateArn": "arn:aws:acm:us-west-2:111122223333:certificate/1",
        "domain": "models.some-department.acme.example",
        "sourceCidrs": ["10.20.0.0/16", "10.30.0.0/16", "192.168.100.0/24"],
    }
    spec["models"][0]["weights"] = {"s3": "s3://acme-models-in-oregon/qwen/", "catalog": "Qwen/Qwen3-8B"}
    spec["models"][1]["name"] = "a-model-name-of-as-many-as-forty-letters"
    spec["models"][1]["routing"] = {"roundRobin": {}}
    spec["models"][-1]["deployments"][0]["aggregated"]["replicas"] = 7
    spec["pools"][models - 1]["nodes"]["max"] = 9
    spec["pools"][0]["instanceTypes"] = ["g6e.2xlarge", "g6e.4xlarge", "g6e.8xlarge"]
    spec["pools"][1]["purchase"] = {"spot": {}}
    return document


@cache
def shipped_sample(name: str) -> Scene:
    """Return a shipped blueprint with its plan."""
    blueprint = load_blueprint(name).blueprint
    return Scene(blueprint, build_plan(blueprint))


@pytest.fixture(scope="session")
def shipped_scene() -> Callable[[str], Scene]:
    """Return a function that finds a shipped blueprint with its plan."""
    return shipped_sample


_GENERATED: dict[str, Callable[[], dict[str, Any]]] = {
    "quickstart": _quickstart,
    "six-five": lambda: generated_blueprint(6, 5),
    "fifty-forty": lambda: generated_blueprint(50, 40),
    "varied": lambda: _varied(5, 4),
}


@cache
def _sample(name: str) -> Scene:
    return shipped_sample(name) if name in shipped() else _scene(_GENERATED[name]())


@cache
def _summary(name: str) -> PlanSummary:
    scene = _sample(name)
    return summarise(scene.blueprint, scene.plan)


@pytest.fixture(scope="session", params=[*_GENERATED, *shipped()])
def scene_name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="session")
def scene(scene_name: str) -> Scene:
    return _sample(scene_name)


@pytest.fixture(scope="session")
def summary(scene_name: str) -> PlanSummary:
    """Return the summary of the scene's plan."""
    return _summary(scene_name)
