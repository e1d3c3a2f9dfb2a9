"""What taking a platform away relies on: stacks can be found, and go before what they stand on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from app import build_app
from inference_blueprints.deployment.doctor.access import REQUIRED_BOOTSTRAP_VERSION
from inference_blueprints.deployment.stacks import level
from inference_blueprints.loading import load_blueprint
from inference_blueprints.spec.shipped import shipped


@pytest.fixture(scope="module", params=list(shipped()))
def stacks(request, tmp_path_factory):
    """The stacks of a shipped blueprint, as the CDK command line reads them, and the platform's name."""
    directory: Path = tmp_path_factory.mktemp("assembly")
    loaded = load_blueprint(request.param)
    context = {"aws:cdk:disable-asset-staging": True, "aws:cdk:bundling-stacks": []}
    build_app(loaded, outdir=directory, context=context).synth()
    artifacts = json.loads((directory / "manifest.json").read_text())["artifacts"]
    found = {name: each for name, each in artifacts.items() if each["type"] == "aws:cloudformation:stack"}
    return loaded.blueprint.metadata.name, found


def test_every_stack_carries_the_platform_s_tag(stacks):
    platform, artifacts = stacks
    assert {each["properties"]["tags"]["inference-blueprints:platform"] for each in artifacts.values()} == {
        platform
    }


def test_what_a_stack_stands_on_is_deleted_later(stacks):
    platform, artifacts = stacks
    upside_down = [
        (name, other)
        for name, each in artifacts.items()
        for other in each.get("dependencies", [])
        if other in artifacts and level(platform, other) >= level(platform, name)
    ]
    assert upside_down == []


def test_the_doctor_asks_for_the_bootstrap_that_the_stacks_need(stacks):
    _, artifacts = stacks
    needed = {each["properties"]["requiresBootstrapStackVersion"] for each in artifacts.values()}
    assert needed == {REQUIRED_BOOTSTRAP_VERSION}
