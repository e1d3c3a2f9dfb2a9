"""What is written by one part of batch is read by another as it was meant."""

from __future__ import annotations

import json

import pytest

from batch.contracts.request import JobDescription
from batch.contracts.shard import ShardDone, ShardLine, ShardMessage, Usage
from inference_contracts.batch_keys import JobKeys
from inference_contracts.batch_names import (
    FINAL,
    STATES,
    TRANSITIONS,
    can_follow,
)


@pytest.mark.parametrize(
    "value",
    [
        ShardLine(
            ordinal=0, line=7, custom_id='an "odd" id\u2028', tokens=12, body={"messages": [], "n": 1.5}
        ),
        ShardLine(1, 8, "row", 3, body={"title": "Ä", "price": None}, images=("s3://a/ü.png",)),
        ShardMessage(job="j", shard="00001", task_token="t" * 1000),
        ShardDone(shard="00001", completed=5, failed=1, attempts=7, usage=Usage(100, 90, 20)),
        JobDescription(job="j", team="ads", model="m", endpoint="/v1/chat/completions", deadline=1.5),
        JobDescription(
            job="j",
            team="ads",
            model="m",
            endpoint="/v1/chat/completions",
            deadline=1.5,
            data_prefixes=("s3://a/b/", "s3://c/"),
        ),
    ],
)
def test_what_is_written_is_read_again(
    value: ShardLine | ShardMessage | ShardDone | JobDescription,
) -> None:
    text = value.to_json()
    assert "\n" not in text
    assert type(value).from_json(text) == value


def test_chunks_sort_as_their_numbers_do() -> None:
    shard = JobKeys("j").shard("00001")
    keys = [shard.chunk(number) for number in (0, 9, 10, 99, 100, 12_345_678)]
    assert keys == sorted(keys)
    assert all(key.startswith(shard.chunks) for key in keys)


def test_a_job_shares_no_key_with_another() -> None:
    one, other = JobKeys("j1"), JobKeys("j11")
    assert not other.description.startswith(one.prefix)


def test_final_states_are_left_by_a_redrive_alone() -> None:
    assert set(STATES) == set(TRANSITIONS)
    after_final = {after for state in FINAL for after in TRANSITIONS[state]}
    assert after_final == {"in_progress"}
    assert not can_follow("cancelled", "in_progress")
    assert can_follow("expired", "in_progress")


def test_a_job_that_an_earlier_release_planned_can_be_redriven() -> None:
    """A document of the first release has a template, which no worker of this one knows."""
    old = {
        "job": "batch_1",
        "team": "ads",
        "model": "m",
        "endpoint": "/v1/chat/completions",
        "deadline": 5,
        "data_prefixes": [],
        "template": None,
        "attempt": 1,
    }
    assert JobDescription.from_json(json.dumps(old)).deadline == 5.0
    old["template"] = {"text": "{{ x }}", "image_fields": [], "parameters": {}}
    with pytest.raises(TypeError, match="submit it again"):
        JobDescription.from_json(json.dumps(old))
