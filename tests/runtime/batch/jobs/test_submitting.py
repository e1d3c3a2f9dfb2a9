"""Whatever call to AWS breaks off, carried out or not, the next try makes the submission whole."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
from botocore.client import BaseClient

from batch.contracts.request import Input, RequestTemplate
from batch.jobs.job_table import Job, Once
from batch.jobs.manifest import JobManifest
from batch.jobs.settings import BatchPlatform
from batch.jobs.submitting import SubmittedJob, Submitter
from inference_contracts.batch_configuration import DeclaredSignal
from inference_contracts.batch_keys import JobKeys
from tests.runtime.batch import resources


class BrokenOffError(Exception):
    """The function ended, or its connection."""


@pytest.fixture
def submit(platform_in_process: BatchPlatform) -> Callable[[], Job]:
    """Submit the same thing again and again."""
    platform = platform_in_process
    manifest = JobManifest(
        inputs=(Input("search-data", "prompts/a.jsonl"),),
        endpoint="/v1/chat/completions",
        priority=1,
        deadline_hours=1,
        budget_usd=1,
    )
    submission = SubmittedJob(
        manifest=manifest,
        queue=platform.configuration.queues[0],
        team=platform.configuration.teams[0],
        source="api",
        principal=resources.SEARCH,
        once=Once("run-7", "fingerprint"),
        completion_window="1h",
    )
    submitter = Submitter(platform.jobs, platform.storage, platform.executions)
    return lambda: submitter.submit(submission)


def break_off(monkeypatch: pytest.MonkeyPatch, call: int, *, is_carried_out: bool) -> Callable[[], int]:
    """Let one call break off; the function returned tells how many there were."""
    real = BaseClient._make_api_call
    numbers = itertools.count()
    made: list[int] = []

    def make(client: BaseClient, operation: str, arguments: dict[str, Any]) -> Any:
        number = next(numbers)
        made.append(number)
        if number != call:
            return real(client, operation, arguments)
        if is_carried_out:
            real(client, operation, arguments)
        raise BrokenOffError(operation)

    monkeypatch.setattr(BaseClient, "_make_api_call", make)
    return lambda: len(made)


def test_a_submission_takes_few_calls(submit: Callable[[], Job], monkeypatch: pytest.MonkeyPatch) -> None:
    made = break_off(monkeypatch, -1, is_carried_out=False)
    submit()

    # The key, the record, what checking reads, the execution: those that break off below.
    assert made() == 4


@pytest.mark.parametrize("is_carried_out", [False, True])
@pytest.mark.parametrize("call", range(4))
def test_a_submission_that_breaks_off_is_made_whole(
    submit: Callable[[], Job],
    platform_in_process: BatchPlatform,
    aws: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    call: int,
    *,
    is_carried_out: bool,
) -> None:
    with monkeypatch.context() as context:
        break_off(context, call, is_carried_out=is_carried_out)
        with pytest.raises(BrokenOffError):
            submit()

    job = submit()

    assert submit() == job
    assert platform_in_process.jobs.of_team("search", after=None, limit=9).jobs == (job,)
    assert [each["name"] for each in resources.executions(aws)] == [f"{job.id}-1"]
    assert resources.list_keys("") == [JobKeys(job.id).request]


def test_a_manifest_is_fingerprinted_as_in_earlier_releases() -> None:
    """Red if a field is renamed: a request that a client repeats across an upgrade becomes a second job."""
    manifest = JobManifest(
        inputs=(Input("b", "k"),),
        endpoint="/v1/chat/completions",
        priority=10,
        deadline_hours=24,
        budget_usd=1000.0,
        template=RequestTemplate("t"),
        signal=DeclaredSignal("s", "t", 72.0),
        metadata={"run": "x"},
    )

    # Recorded with commit 07d33550. The idempotency keys of requests and manifests hold a hash of it.
    assert repr(manifest) == (
        "JobManifest(inputs=(Input(bucket='b', key='k', format='jsonl'),), endpoint='/v1/chat/completions', "
        "priority=10, deadline_hours=24, budget_usd=1000.0, skip_invalid=False, idempotency_key='', "
        "template=RequestTemplate(text='t', image_fields=(), parameters={}), "
        "signal=DeclaredSignal(name='s', team='t', ttl_hours=72.0), metadata={'run': 'x'}, "
        "output_seconds=None, accept_late=False)"
    )
