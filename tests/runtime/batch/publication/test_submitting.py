"""Jobs name a signal of their own team, however they come in; what came later has a later version."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from batch.contracts.request import JobRequest
from batch.jobs.fields import InvalidError
from batch.jobs.manifest import read_manifest
from batch.jobs.settings import BatchPlatform
from batch.submission.handlers import build as build_submissions
from inference_contracts.batch_configuration import Configuration
from inference_contracts.batch_keys import JobKeys
from tests.runtime.batch import resources
from tests.runtime.batch.api.requesting import Api

ENDPOINT = "/v1/chat/completions"
SCHEDULE = {"schedule": "arn:of-the-schedule", "queue": "nightly", "team": "search"}
INPUTS = {"inputs": ["s3://search-data/prompts/a.jsonl"]}


@pytest.fixture
def api(platform_in_process: BatchPlatform) -> Api:
    return Api(platform_in_process)


def batch(api: Api, signal: str, **changes: Any) -> Any:
    body = {"input_file_id": api.file(), "endpoint": ENDPOINT, "completion_window": "24h"}
    return api.post("/v1/batches", {**body, "metadata": {"signal": signal}, **changes})


def publication(job: str) -> Any:
    return JobRequest.from_json(resources.read_object(JobKeys(job).request)).publication


def test_metadata_name_a_signal_of_the_team(api: Api) -> None:
    answer = batch(api, "product-captions")
    assert answer.status == 200
    assert answer.body["signal"] == {"name": "product-captions", "written": 0, "superseded": 0, "unfit": 0}
    found = publication(answer.body["id"])
    assert (found.signal, found.ttl_seconds) == ("product-captions", 72 * 3600)
    assert found.version // 1000 == pytest.approx(answer.body["created_at"], abs=2)
    assert api.get(f"/v1/batches/{answer.body['id']}").body == answer.body


def test_a_job_without_a_signal_says_so(api: Api) -> None:
    body = {"input_file_id": api.file(), "endpoint": ENDPOINT, "completion_window": "24h"}
    answer = api.post("/v1/batches", body)
    assert answer.body["signal"] is None
    assert publication(answer.body["id"]) is None


@pytest.mark.parametrize(
    ("signal", "changes", "message"),
    [
        ("topics", {}, "metadata.signal: got topics, must be one of product-captions"),
        ("product-caption", {}, "must be one of product-captions"),
        ("product-captions", {"endpoint": "/v1/embeddings"}, "answers of /v1/embeddings are not text"),
    ],
)
def test_another_team_s_signal_and_what_is_no_text_are_refused(
    api: Api, signal: str, changes: dict[str, Any], message: str
) -> None:
    answer = batch(api, signal, **changes)
    assert (answer.status, answer.error["param"]) == (400, "metadata.signal")
    assert message in answer.error["message"]
    assert api.get("/v1/batches").body["data"] == []


def test_a_platform_without_signals_says_that_there_are_none() -> None:
    configuration = Configuration.from_json(json.dumps({**resources.CONFIGURATION, "signals": []}))
    text = json.dumps({**INPUTS, "signal": "product-captions"})
    team = configuration.teams[0]
    with pytest.raises(InvalidError, match="signal: got product-captions, must be left out: your team"):
        read_manifest(
            text, queue=configuration.queues[0], team=team, signals=configuration.signals_of(team.name)
        )


def test_manifests_and_schedules_name_one_as_well(platform_in_process: BatchPlatform) -> None:
    submissions = build_submissions(platform_in_process)
    manifest = {**INPUTS, "signal": "product-captions"}
    job = submissions.of_schedule({**SCHEDULE, "time": "2026-11-21T02:00:00Z", "manifest": manifest})
    assert job.publication == publication(job.id)
    assert job.publication is not None
    wrong = {**manifest, "signal": "topics"}
    refused = submissions.of_schedule({**SCHEDULE, "time": "2026-11-22T02:00:00Z", "manifest": wrong})
    assert (refused.state, [error.param for error in refused.errors]) == ("failed", ["signal"])


def test_of_two_jobs_of_one_second_the_later_has_the_later_version(
    platform_in_process: BatchPlatform, monkeypatch: pytest.MonkeyPatch
) -> None:
    submissions = build_submissions(platform_in_process)
    versions = []
    for milliseconds in (1, 2):
        monkeypatch.setattr(time, "time", lambda: 1_800_000_000.0)
        nanoseconds = 1_800_000_000_000_000_000 + milliseconds * 1_000_000
        monkeypatch.setattr(time, "time_ns", lambda at=nanoseconds: at)
        event = {**SCHEDULE, "time": f"2026-11-2{milliseconds}T02:00:00Z"}
        job = submissions.of_schedule({**event, "manifest": {**INPUTS, "signal": "product-captions"}})
        assert job.publication is not None
        versions.append(job.publication.version)
    assert versions == [1_800_000_000_001, 1_800_000_000_002]


def test_a_submission_that_comes_again_keeps_its_version(platform_in_process: BatchPlatform) -> None:
    submissions = build_submissions(platform_in_process)
    event: dict[str, Any] = {**SCHEDULE, "time": "2026-11-21T02:00:00Z"}
    event["manifest"] = {**INPUTS, "signal": "product-captions"}
    first, again = submissions.of_schedule(event), submissions.of_schedule(event)
    assert first == again
    assert publication(first.id) == first.publication
