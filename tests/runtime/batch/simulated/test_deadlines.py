"""New jobs are judged with the jobs before them and with the observed speed, not with an empty queue.

The platform of this simulation plans a minute of its model for a shard, and takes two.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from batch.contracts.progress_items import ShardProgress
from batch.contracts.shard import ShardDone, Usage
from batch.jobs.settings import BatchPlatform
from batch.objects import Objects
from batch.preparation import cutting
from batch.scheduling.measuring import SpeedTable
from inference_contracts.batch_keys import JobKeys
from tests.runtime.batch import resources
from tests.runtime.batch.api.requesting import Api
from tests.runtime.batch.every_call import CONFIGURATION
from tests.runtime.batch.job_records import NOW
from tests.runtime.batch.simulated.job_life import Life, Story, simulated
from tests.runtime.batch.simulated.state_machine import Process

HOUR = 3600
PLACES = 8
LINES_PER_SHARD = 10
TOKENS_PER_LINE = 100
PLANNED_SECONDS = 60
REAL_SECONDS = 120


class SlowPlatform(Life):
    """Workers share the model: with all places used, it answers a shard in `REAL_SECONDS`."""

    def _work(self, message: Mapping[str, str]) -> Process:
        name, shard = message["job"], message["shard"]
        for lines in range(1, LINES_PER_SHARD + 1):
            if not self.machine.beat(message["taskToken"]):
                return
            yield self.env.timeout(REAL_SECONDS * PLACES / LINES_PER_SHARD)
            report = ShardProgress(attempt=1, completed=lines).write(name, shard, now=NOW)
            resources.client("dynamodb").put_item(TableName=resources.PROGRESS_TABLE, **report)
        keys, objects = JobKeys(name).shard(shard), Objects(resources.BUCKET)
        objects.write(keys.output, b'{"custom_id":"a"}\n' * LINES_PER_SHARD)
        done = ShardDone(shard, LINES_PER_SHARD, 0, LINES_PER_SHARD, Usage(1000, 500, 100))
        objects.write(keys.done, done.to_json().encode())
        self.deliver(lambda: self.machine.succeed(message["taskToken"], {}))


class Submitter:
    """A team that submits jobs and looks at them."""

    def __init__(self, life: Life, platform: BatchPlatform) -> None:
        self._life = life
        self.platform = platform
        self._api = Api(platform)

    def submit(self, shards: int, window: str, **metadata: str) -> str:
        rows = (
            {
                "custom_id": f"line-{number}",
                "method": "POST",
                "url": "/v1/chat/completions",
                "body": {
                    "model": "qwen3-8b",
                    "messages": [{"role": "user", "content": "word"}],
                    "max_tokens": TOKENS_PER_LINE,
                },
            }
            for number in range(shards * LINES_PER_SHARD)
        )
        content = b"".join(json.dumps(row).encode() + b"\n" for row in rows)
        file = self._api.post_form("/v1/files", {"purpose": "batch"}, content=content).body["id"]
        body = {
            "input_file_id": file,
            "endpoint": "/v1/chat/completions",
            "completion_window": window,
            "metadata": metadata,
        }
        return str(self._api.post("/v1/batches", body).body["id"])

    def job(self, identifier: str) -> dict[str, Any]:
        found: dict[str, Any] = self._api.get(f"/v1/batches/{identifier}").body
        return found

    def run(self, *, until: float) -> None:
        self._life.env.run(until=until)


@contextmanager
def platform_in_use(monkeypatch: pytest.MonkeyPatch) -> Iterator[Submitter]:
    configuration = copy.deepcopy(CONFIGURATION)
    configuration["queues"][0]["capacity"] |= {
        "places": PLACES,
        "inputTokensPerSecond": 1e9,
        "outputTokensPerSecond": LINES_PER_SHARD * TOKENS_PER_LINE / PLANNED_SECONDS,
    }
    monkeypatch.setattr(cutting, "MAX_SHARD_LINES", LINES_PER_SHARD)
    life = SlowPlatform(Story("completed"))
    with simulated(life, configuration) as platform:
        life.env.process(life.run_scheduler())
        yield Submitter(life, platform)


def errors(job: dict[str, Any]) -> list[str]:
    return [each["code"] for each in (job["errors"] or {"data": []})["data"]]


@pytest.mark.faults
def test_new_jobs_are_judged_with_what_is_queued_and_with_the_observed_speed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with platform_in_use(monkeypatch) as team:
        # An hour by the plan, two in fact.
        first = team.submit(60, "4h")
        team.run(until=300)
        planned_end = team.job(first)["expected_at"] - NOW
        assert planned_end == pytest.approx(HOUR, rel=0.2)
        team.run(until=1.5 * HOUR)
        assert SpeedTable(team.platform.table).of("qwen3-8b") == pytest.approx(0.5, abs=0.1)
        assert team.job(first)["expected_at"] - NOW == pytest.approx(2 * HOUR, rel=0.1)

        # 75 shards are left with this job: 1.25 hours by the plan, and 2.5 in fact.
        refused = team.submit(60, "2h")
        team.run(until=1.5 * HOUR + 300)
        assert team.job(refused)["status"] == "failed"
        assert errors(team.job(refused)) == ["misses_deadline"]

        accepted = team.submit(10, "2h")
        team.run(until=1.5 * HOUR + 420)
        late = team.submit(60, "2h", accept_late="true")
        team.run(until=1.5 * HOUR + 900)
        assert team.job(accepted)["expected_at"] < team.job(accepted)["expires_at"]
        assert team.job(late)["expected_at"] > team.job(late)["expires_at"]
        team.run(until=4 * HOUR)
        assert [team.job(each)["status"] for each in (first, accepted)] == ["completed", "completed"]
        assert team.job(late)["status"] == "expired"
        assert team.job(late)["request_counts"]["completed"] > 0


@pytest.mark.faults
def test_a_burst_that_does_not_fit_is_refused_in_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of these jobs takes 24 minutes by the plan, so five of them fit into two hours."""
    with platform_in_use(monkeypatch) as team:
        jobs = []
        for second in range(8):
            jobs.append(team.submit(24, "2h"))
            team.run(until=second + 1)
        team.run(until=600)
        found = [team.job(each) for each in jobs]
        refused = [each["id"] for each in found if errors(each) == ["misses_deadline"]]
        assert refused == jobs[-len(refused) :], "those that came first stay"
        assert 3 <= len(refused) <= 5
