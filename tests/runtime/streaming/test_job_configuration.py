"""The configuration of a streaming job, against the document that the Java tests read too."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from inference_contracts.streaming_job import JobDoor, JobShard, StreamingJobConfiguration

EXAMPLE = (Path(__file__).parent / "job.json").read_text(encoding="utf-8")


def test_the_example_is_read_and_written_as_it_is() -> None:
    assert StreamingJobConfiguration.from_json(EXAMPLE).to_json() == EXAMPLE


def test_every_change_has_another_digest() -> None:
    changed = EXAMPLE.replace('"maxTokens": 64', '"maxTokens": 65')
    digests = {StreamingJobConfiguration.from_json(text).digest for text in (EXAMPLE, changed)}
    assert len(digests) == 2


@pytest.mark.parametrize(
    ("edit", "named"),
    [
        (lambda found: found["signal"]["store"].pop("tls"), "signal.store.tls"),
        (lambda found: found["history"].update(rolloverSeconds=60), "history.rolloverSeconds"),
        (lambda found: found.update(prompt=None), "prompt.maxCharacters, prompt.system, prompt.template"),
    ],
)
def test_a_key_too_few_or_too_many_is_named(edit: object, named: str) -> None:
    found = json.loads(EXAMPLE)
    assert callable(edit)
    edit(found)
    with pytest.raises(ValueError, match=f"missing or unknown keys: {named}"):
        StreamingJobConfiguration.from_json(json.dumps(found))


def test_later_keys_are_left_out_without_a_value() -> None:
    """A job without them would restart for nothing, and its former release would refuse the document."""
    found = json.loads(EXAMPLE)
    found["kafka"] |= {"moreTopics": ["carts"], "shard": {"index": 1, "count": 3}}
    found["endpoint"]["maxAgeMillis"] = 900_000
    found["endpoint"]["door"] = {"model": "streaming:shopper", "team": "ads", "secret": "arn"}
    made = StreamingJobConfiguration.from_json(json.dumps(found))
    assert (made.kafka.more_topics, made.kafka.shard) == (("carts",), JobShard(index=1, count=3))
    assert made.endpoint.door == JobDoor(model="streaming:shopper", team="ads", secret="arn")  # noqa: S106
    assert json.loads(made.to_json()) == found
    assert StreamingJobConfiguration.from_json(made.to_json()) == made
