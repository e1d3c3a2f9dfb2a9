"""What taking a platform away relies on: stacks can be found, and go before what they stand on.

With the blueprints of `shipped_name` that have `pytest.mark.thorough`, they belong to that suite.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from inference_blueprints.loading import load_blueprint
from inference_blueprints.operate.cloudformation.deployed_stacks import level
from inference_blueprints.operate.doctor.access_checks import REQUIRED_BOOTSTRAP_VERSION
from tests.templates.support import Templates


@pytest.fixture(scope="session")
def stacks(shipped_name: str, shipped_templates: Templates) -> tuple[str, dict[str, Any]]:
    """The platform's name and its stacks, as the CDK command line reads them."""
    artifacts = json.loads((shipped_templates.directory / "manifest.json").read_text())["artifacts"]
    found = {name: each for name, each in artifacts.items() if each["type"] == "aws:cloudformation:stack"}
    return load_blueprint(shipped_name).blueprint.metadata.name, found


def test_every_stack_carries_the_platform_s_tag(stacks: tuple[str, dict[str, Any]]) -> None:
    platform, artifacts = stacks
    assert {each["properties"]["tags"]["inference-blueprints:platform"] for each in artifacts.values()} == {
        platform
    }


def test_what_a_stack_stands_on_is_deleted_later(stacks: tuple[str, dict[str, Any]]) -> None:
    platform, artifacts = stacks
    upside_down = [
        (name, other)
        for name, each in artifacts.items()
        for other in each.get("dependencies", [])
        if other in artifacts and level(platform, other) >= level(platform, name)
    ]
    assert upside_down == []


def test_the_doctor_asks_for_the_bootstrap_that_the_stacks_need(stacks: tuple[str, dict[str, Any]]) -> None:
    _, artifacts = stacks
    needed = {each["properties"]["requiresBootstrapStackVersion"] for each in artifacts.values()}
    assert needed == {REQUIRED_BOOTSTRAP_VERSION}
