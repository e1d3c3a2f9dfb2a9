"""The command `verify` against a model that is served on this machine by the real frontend and router."""

import copy
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from inference_blueprints.resources import blueprints_directory
from tests.local.serving.conftest import Served
from tests.unit.command_run import blueprints

_DOCUMENT = yaml.safe_load((blueprints_directory() / "quickstart-g6e.yaml").read_text())
# Each answer has the tokens of the workload, at the pace of the simulated engine.
_DOCUMENT["spec"]["models"][0]["workload"]["outputTokens"] = 20


def verified(served: Served, folder: Path, **changes: Any) -> tuple[int, list[dict[str, str]]]:
    """Exit code and observations for the quickstart's model with some sections changed."""
    document = copy.deepcopy(_DOCUMENT)
    document["spec"]["models"][0].update(changes)
    path = folder / "blueprint.yaml"
    path.write_text(yaml.safe_dump(document))
    options = ("--endpoint", served.endpoint.base_url, "--output", "json")
    result = blueprints("verify", str(path), *options, folder=folder)
    return result.code, json.loads(result.out)


def test_a_served_model_streams_counts_caches_and_keeps_its_objectives(
    served: Served, tmp_path: Path
) -> None:
    code, observations = verified(served, tmp_path)
    assert [(each["check"], each["severity"]) for each in observations] == [
        ("models", "ok"),
        ("tokens", "ok"),
        ("structured output", "unknown"),
        ("prefix cache", "ok"),
        ("objectives", "ok"),
        ("objectives", "ok"),
    ]
    assert code == 0
    assert all("(simulated)" in each["message"] for each in observations if each["check"] == "objectives")
    # Words are weighed by a sample of them, so the prompts are about as long as the workload's.
    (tokens,) = re.findall(r"5 requests of ([\d,]+) and", observations[-1]["message"])
    workload = _DOCUMENT["spec"]["models"][0]["workload"]
    assert int(tokens.replace(",", "")) == pytest.approx(workload["inputTokens"], rel=0.1)


def test_objectives_that_are_missed_are_errors(served: Served, tmp_path: Path) -> None:
    code, observations = verified(served, tmp_path, objectives={"timeToFirstTokenP90Ms": 1})
    assert code == 1
    assert [each["severity"] for each in observations if each["check"] == "objectives"] == ["error", "ok"]


def test_a_model_that_is_missing_is_an_error(served: Served, tmp_path: Path) -> None:
    code, observations = verified(served, tmp_path, name="another")
    assert code == 1
    by_check = {each["check"]: each for each in observations}
    assert "served models: qwen3-8b" in by_check["models"]["message"]
    assert "HTTP 404" in by_check["tokens"]["message"]
    assert by_check["objectives"]["severity"] == "unknown"
