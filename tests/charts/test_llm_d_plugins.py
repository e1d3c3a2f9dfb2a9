"""What the router's programs are told, against what a release of them takes: see ``llm_d_router.json``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from inference_blueprints.serving.types import DeploymentPlan
from tests.charts.llm_d import configuration, deployments, sidecars
from tests.charts.renderings import Manifest

_RECORDED = json.loads((Path(__file__).parent / "llm_d_router.json").read_text(encoding="utf-8"))
_TYPES: Mapping[str, tuple[type, ...]] = {
    "array": (list,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
    "object": (dict,),
    "string": (str,),
}


@pytest.fixture
def deployment(llm_d_deployment: DeploymentPlan) -> DeploymentPlan:
    return llm_d_deployment


def test_every_plugin_is_one_that_the_picker_has_and_loads(rendered: list[Manifest]) -> None:
    types = {each["type"] for each in configuration(rendered, "picker.yaml")["plugins"]}
    assert types <= set(_RECORDED["plugins"]), "others are unknown, or refused as experimental"
    assert not set(_RECORDED["plugins"]) & set(_RECORDED["experimental_plugins"])


def test_every_parameter_is_one_that_its_plugin_decodes(rendered: list[Manifest]) -> None:
    for plugin in configuration(rendered, "picker.yaml")["plugins"]:
        known = _RECORDED["parameters"].get(plugin["type"], {})
        assert list(_faults(plugin.get("parameters", {}), known, plugin["type"])) == []


@pytest.mark.parametrize(
    ("parameters", "fault"),
    [
        ({"noncachedtokens": 512}, "prefix-based-pd-decider: no noncachedtokens"),
        ({"nonCachedTokens": "512"}, "prefix-based-pd-decider.nonCachedTokens: not integer"),
        ({"nonCachedTokens": True}, "prefix-based-pd-decider.nonCachedTokens: not integer"),
    ],
)
def test_a_slip_of_the_pen_is_found(parameters: Manifest, fault: str) -> None:
    known = _RECORDED["parameters"]["prefix-based-pd-decider"]
    assert list(_faults(parameters, known, "prefix-based-pd-decider")) == [fault]


def test_every_flag_is_one_that_the_program_has(rendered: list[Manifest]) -> None:
    seen = set()
    for spec in deployments(rendered).values():
        for name, program in sidecars(spec["template"]["spec"]).items():
            if name in _RECORDED["flags"]:
                seen.add(name)
                assert {word.partition("=")[0] for word in program["args"]} <= set(_RECORDED["flags"][name])
    assert "picker" in seen


def _faults(given: Mapping[str, Any], known: Mapping[str, Any], where: str) -> Iterator[str]:
    """What a strict decoder would refuse."""
    for key, value in given.items():
        if key not in known:
            yield f"{where}: no {key}"
        elif isinstance(known[key], dict):
            yield from _faults(value, known[key], f"{where}.{key}")
        elif not isinstance(value, _TYPES[known[key]]) or (
            isinstance(value, bool) != (known[key] == "boolean")
        ):
            yield f"{where}.{key}: not {known[key]}"
