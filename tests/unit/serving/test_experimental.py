"""Ways of serving that upstream projects do not call proven are named, each with its source."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

import inference_catalog as catalog
from inference_blueprints import resources
from inference_blueprints.serving.checks.support_checks import experimental_findings
from inference_blueprints.serving.resolved import resolve
from inference_blueprints.spec.types import Blueprint

SPLIT = "p5en-disaggregated"
WIDE = "p5en-kimi-k2"


def warnings_of(name: str, *, efa: bool = True, **model: Any) -> list[str]:
    document = yaml.safe_load((resources.blueprints_directory() / f"{name}.yaml").read_text(encoding="utf-8"))
    document["spec"]["models"][0] |= model
    document["spec"]["pools"][0]["efa"] = efa
    found = list(experimental_findings(resolve(Blueprint.model_validate(document), 0, 0)))
    assert {(finding.path, finding.severity) for finding in found} <= {
        (("spec", "models", 0, "deployments", 0), "warning")
    }
    return [finding.message for finding in found]


@pytest.mark.parametrize(
    ("name", "changes", "way"),
    [
        (SPLIT, {"engine": {"sglang": {}}}, "sglangOverEfa"),
        (SPLIT, {"engine": {"sglang": {}}, "efa": False}, None),
        (SPLIT, {"engine": {"vllm": {}}}, None),
        (WIDE, {}, "wideExpertParallelism"),
        ("p6-b300-qwen3-235b", {}, None),
    ],
)
def test_a_warning_names_the_way_and_its_source(name: str, changes: dict[str, Any], way: str | None) -> None:
    known = catalog.experimental_ways()
    expected = [f"{known[way].what} is experimental: "] if way else []
    found = warnings_of(name, **changes)
    assert [message[: len(start)] for message, start in zip(found, expected, strict=True)] == expected
    assert all(known[str(way)].source in message for message in found)


@pytest.mark.parametrize("name", sorted(catalog.experimental_ways()))
def test_an_entry_has_a_source(name: str) -> None:
    assert catalog.experimental_ways()[name].source.startswith("https://github.com/")


def test_only_the_blueprint_that_says_so_is_experimental() -> None:
    files = resources.blueprints_directory().glob("*.yaml")
    experimental = {file.stem for file in files if warnings_of(file.stem, efa=_efa(file.read_text()))}
    assert experimental == {WIDE}
    assert "experimental" in (resources.blueprints_directory() / f"{WIDE}.yaml").read_text(encoding="utf-8")


def _efa(text: str) -> bool:
    return "efa: true" in text
