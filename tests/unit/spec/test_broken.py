"""Broken files: each case states every line that is reported, and no other may come."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from inference_blueprints.loading import parse_blueprint
from inference_blueprints.spec.structure import keys, section_at
from inference_contracts.errors import BlueprintError

HERE = Path(__file__).parent
BASE = (HERE / "base.yaml").read_text(encoding="utf-8")
CASES = [
    pytest.param(case, id=f"{file.stem}: {case['case']}")
    for file in sorted((HERE / "broken").glob("*.yaml"))
    for case in yaml.safe_load(file.read_text(encoding="utf-8"))
]


def text_of(case: dict[str, Any]) -> str:
    """Return the broken file that a case describes."""
    text: str = case.get("text", BASE)
    for edit in case.get("edits", ()):
        assert edit["replace"] in text, "the edit has to find its place"
        text = text.replace(edit["replace"], edit["by"], 1)
    appended: str = case.get("append", "")
    return text + appended


def with_keys(line: str) -> str:
    """Return an expected line with the keys that the section has, of which a message lists twelve."""
    place, unknown, rest = line.partition(": is an unknown key, keys are …")
    if not unknown:
        return line
    parts = re.sub(r"\[\d+\]", "", place.split()[-1]).split(".")
    section = section_at(tuple(parts[:-1]))
    assert section is not None
    names = [repr(name) for name in keys(section)]
    more = f" and {len(names) - 12} more" if len(names) > 12 else ""
    return f"{place}: is an unknown key, keys are {', '.join(names[:12])}{more}{rest}"


def test_the_base_is_right() -> None:
    assert parse_blueprint(BASE, "base.yaml").warnings == ()


def test_there_are_many_cases() -> None:
    assert len(CASES) >= 200
    assert len({case.id for case in CASES}) == len(CASES)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("case", CASES)
def test_every_problem_is_reported_and_no_other(case: dict[str, Any]) -> None:
    text = text_of(case)
    with pytest.raises(BlueprintError) as caught:
        parse_blueprint(text, "base.yaml")
    expected = [
        f"base.yaml:{line}" if line[0].isdigit() else f"base.yaml: {line}"
        for line in map(with_keys, case["problems"].splitlines())
    ]
    assert [str(problem) for problem in caught.value.problems] == expected
    lines = text.split("\n")
    for problem in caught.value.problems:
        assert problem.line <= len(lines)
        assert problem.column <= (len(lines[problem.line - 1]) + 1 if problem.line else 0)
