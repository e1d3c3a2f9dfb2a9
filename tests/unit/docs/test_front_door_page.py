"""What docs/front-door.md shows is a part of a valid file, and its figures are those of the plan."""

from __future__ import annotations

import ast
import json
import re
from typing import Any

import pytest
import yaml

from inference_blueprints.loading import parse_blueprint
from inference_blueprints.resources import blueprints_directory, root
from inference_blueprints.serving.plan import build_plan
from inference_catalog.door_loads import door_store_load

PAGE = (root() / "docs" / "front-door.md").read_text(encoding="utf-8")
SHIPPED = yaml.safe_load((blueprints_directory() / "front-door.yaml").read_text(encoding="utf-8"))
FENCES = re.findall(r"```(\w+)\n(.*?)```", PAGE, re.DOTALL)
PARTS = [yaml.safe_load(text) for language, text in FENCES if language == "yaml"]


def with_part(part: dict[str, Any]) -> str:
    """Return the shipped file with a part of `frontDoor` from the page. JSON is YAML too."""
    spec = SHIPPED["spec"]
    teams = [
        {**team, "principals": [f"arn:aws:iam::111122223333:role/{team['name']}"]} for team in spec["teams"]
    ]
    # Those of keys need a way to have keys.
    door = {**spec["frontDoor"], **({} if "budgets" in part else {"budgets": []}), **part}
    return json.dumps({**SHIPPED, "spec": {**spec, "teams": teams, "frontDoor": door}})


def test_there_are_parts_of_all_subjects() -> None:
    assert {key for part in PARTS for key in part} >= {"identity", "budgets", "models", "timeZone"}


@pytest.mark.parametrize("part", PARTS, ids="-".join)
def test_a_part_of_a_file_is_valid(part: dict[str, Any]) -> None:
    """Red if a key of the page is renamed, or if a rule refuses what the page shows."""
    blueprint = parse_blueprint(with_part(part), "page.yaml").blueprint
    assert build_plan(blueprint).front_door is not None


def test_the_program_names_a_model_of_the_shipped_file() -> None:
    [program] = [text for language, text in FENCES if language == "python"]
    names = {value.value for value in ast.walk(ast.parse(program)) if isinstance(value, ast.Constant)}
    models = SHIPPED["spec"]["frontDoor"]["models"]
    assert names & {name for each in models for name in (each["name"], *each.get("aliases", ()))}
    assert f"https://api.{SHIPPED['spec']['network']['domain']}/v1" in names


def test_the_figures_of_a_slot_are_those_of_the_plan() -> None:
    load = door_store_load()
    assert f"{load.units_per_slot_per_second:,} units a second, and a request takes about ten" in PAGE
    assert round(load.units_per_reserved_request) == 10
    assert "about 3,000 requests a second" in PAGE
    assert round(load.reserved_requests_per_slot, -3) == 3000
