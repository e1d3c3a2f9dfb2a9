"""Templates give the prompts of `conformance.json`, which the Java class `PromptTemplate` also gives."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from inference_contracts.prompt_template import (
    _FILTERS,
    _TESTS,
    Prompts,
    RenderingError,
    template_fault,
    template_tree,
)

FOLDER = Path(__file__).parent
FILE: dict[str, Any] = json.loads((FOLDER / "conformance.json").read_text(encoding="utf-8"))
TREES: dict[str, Any] = json.loads((FOLDER / "trees.json").read_text(encoding="utf-8"))
MAX_CHARACTERS = 10_000


@pytest.mark.parametrize("group", sorted({case["group"] for case in FILE["cases"]}))
def test_prompts_and_refusals(group: str) -> None:
    wrong = []
    for case in FILE["cases"]:
        if case["group"] == group:
            expected = {key: case[key] for key in ("prompt", "refused") if key in case}
            if (found := outcome(case)) != expected:
                wrong.append((case["template"], expected, found))
    assert not wrong


def outcome(case: dict[str, Any]) -> dict[str, str]:
    try:
        prompts = Prompts(case["template"], max_characters=case.get("mostCharacters", MAX_CHARACTERS))
    except RenderingError:
        return {"refused": "template"}
    try:
        return {"prompt": prompts.render(case.get("values", FILE["values"]))}
    except RenderingError:
        return {"refused": "values"}


def test_a_refused_template_has_no_tree() -> None:
    refused = [case["template"] for case in FILE["cases"] if case.get("refused") == "template"]
    assert len(refused) > 40
    for text in refused:
        assert template_fault(text)
        with pytest.raises(RenderingError, match="template: "):
            template_tree(text)


def test_each_filter_and_test_has_a_case() -> None:
    """Java has them in its own code, so that one of Python alone would only show where a job uses it."""
    trees = json.dumps(TREES)
    for name in (*_FILTERS, *_TESTS):
        assert f'"name": "{name}"' in trees or f'"value": "{name}"' in trees, name
