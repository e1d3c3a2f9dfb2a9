"""The examples of dead letters, which the job writes too (runtime/java/enrichment-job, DeadLetterTest)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from inference_blueprints.resources import root
from inference_contracts.dead_letters import REASONS, DeadLetter, DeadLetterError

_FILE = root() / "tests" / "runtime" / "streaming" / "dead_letters.json"
CASES: dict[str, Any] = json.loads(_FILE.read_text(encoding="utf-8"))


@pytest.mark.parametrize("letter", CASES["letters"], ids=lambda letter: letter["reason"])
def test_letters_are_read_and_written(letter: dict[str, Any]) -> None:
    read = DeadLetter.from_json(json.dumps(letter))
    assert json.loads(read.to_json()) == letter
    assert DeadLetter.from_json(json.dumps(letter | {"newer": 1}).encode()) == read


@pytest.mark.parametrize("case", CASES["refused"], ids=lambda case: case["what"])
def test_what_is_no_dead_letter_is_refused(case: dict[str, str]) -> None:
    with pytest.raises(DeadLetterError):
        DeadLetter.from_json(case["text"])


def test_each_reason_has_an_example() -> None:
    assert list(REASONS) == CASES["reasons"]
    assert {letter["reason"] for letter in CASES["letters"]} == REASONS.keys()
