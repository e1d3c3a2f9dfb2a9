"""Every answer is looked for in the store, and held against what the job's own file says."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from inference_local.signal_store import SignalCounts, read_back

ANSWERS = {"line-1": "one", "line-2": "two\u2028lines", "line-3": "three"}


def output(answers: Mapping[str, str]) -> str:
    rows = [
        {"custom_id": key, "response": {"body": {"choices": [{"message": {"content": value}}]}}}
        for key, value in answers.items()
    ]
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


@pytest.mark.parametrize(
    ("changes", "counts"),
    [
        ({}, (3, 0, 0)),
        ({"line-2": None}, (2, 1, 0)),
        ({"line-1": {"value": "two\u2028lines"}}, (2, 0, 1)),
        ({"line-1": {"model": "another"}, "line-3": None}, (1, 1, 1)),
    ],
)
def test_each_answer_is_there_missing_or_something_else(
    changes: Mapping[str, Mapping[str, str] | None], counts: tuple[int, int, int]
) -> None:
    records = {key: {"value": value, "model": "qwen"} for key, value in ANSWERS.items()}
    stored = {key: {**record, **(changes.get(key) or {})} for key, record in records.items()}

    def read(name: str, keys: Sequence[str]) -> dict[str, dict[str, Any]]:
        assert name == "captions"
        return {key: stored[key] for key in keys if changes.get(key, {}) is not None}

    found = read_back("captions", "qwen", output(ANSWERS), read)
    assert found == SignalCounts("captions", *counts)
    assert found.is_whole is (counts == (3, 0, 0))


def test_a_job_without_answers_left_nothing() -> None:
    assert read_back("captions", "qwen", "", lambda *_: {}) == SignalCounts("captions", 0, 0, 0)
