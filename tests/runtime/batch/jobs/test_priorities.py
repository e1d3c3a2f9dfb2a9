"""A team's jobs have at most the priority that the blueprint gives the team."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from batch.jobs.fields import InvalidError
from batch.jobs.manifest import read_manifest
from inference_contracts.batch_configuration import Configuration
from tests.runtime.batch.resources import configuration_text

CONFIGURATION = Configuration.from_json(configuration_text())
QUEUE = replace(CONFIGURATION.queues[0], priority=10)


def priority(maximum: int, **asked: int) -> int:
    team = replace(CONFIGURATION.teams[0], max_priority=maximum)
    text = json.dumps({"inputs": ["s3://search-data/prompts/a.jsonl"], **asked})
    return read_manifest(text, queue=QUEUE, team=team, signals={}).priority


def test_the_queues_priority_is_lowered_to_the_teams() -> None:
    assert (priority(100), priority(10), priority(3)) == (10, 10, 3)


def test_a_team_asks_for_no_more_than_it_may() -> None:
    assert priority(20, priority=20) == 20
    with pytest.raises(InvalidError, match="priority"):
        priority(20, priority=21)
