"""Lines of a job are counted by custom_id, whichever file their rows are in."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest

from inference_local.batch.batch_outcome import count, named_images
from tests.unit.local.report.samples import BATCH_OUTCOME


def rows(*custom_ids: str) -> str:
    return "".join(json.dumps({"custom_id": each}) + "\n" for each in custom_ids)


@pytest.mark.parametrize(
    ("output", "errors", "counted"),
    [
        (rows("a", "b", "c"), "", (3, 0, 0, 0)),
        (rows("a", "b"), rows("c"), (2, 1, 0, 0)),
        (rows("a"), "", (1, 0, 2, 0)),
        ("", "", (0, 0, 3, 0)),
        (rows("a", "b", "c", "b", "b"), "", (3, 0, 0, 2)),
        (rows("a", "b", "c"), rows("c"), (3, 1, 0, 1)),
        (rows("a", "b", "c", "stranger"), "", (3, 0, 0, 1)),
    ],
    ids=["whole", "an error", "lost", "nothing", "thrice", "in both files", "of no line"],
)
def test_every_row_is_of_one_line(output: str, errors: str, counted: tuple[int, int, int, int]) -> None:
    counts = count(["a", "b", "c"], output, errors)
    assert dataclasses.astuple(counts) == (3, *counted)


@pytest.mark.parametrize("change", [{"lost": 1, "completed": 199}, {"duplicated": 1}, {"failed": 1}])
def test_a_job_is_whole_when_every_line_was_answered_once(change: dict[str, Any]) -> None:
    assert BATCH_OUTCOME.is_whole
    assert not dataclasses.replace(BATCH_OUTCOME, **change).is_whole


def test_the_images_that_an_output_names_are_listed() -> None:
    body = {"data": [{"file_id": "image-1"}, {"file_id": "image-2"}]}
    row = json.dumps({"custom_id": "a", "response": {"status_code": 200, "body": body}})
    assert named_images(f"{row}\n{row}\n") == ["image-1", "image-2"] * 2
    assert named_images("") == []
