"""A job that publishes is completed when its answers are published, and can be redriven until then."""

from __future__ import annotations

import json
import os

import pytest

from batch.completion.ending import Ends
from batch.completion.redriving import Redriver
from batch.contracts.progress_items import Published
from batch.contracts.request import JobDescription
from batch.contracts.shard import ShardDone
from batch.jobs.job_table import Job
from batch.jobs.settings import BatchPlatform, read_records
from batch.objects import Objects
from batch.publication.listing import list_unpublished
from batch.publication.publishing import Publisher
from inference_contracts.batch_keys import JobKeys
from tests.runtime.batch import resources
from tests.runtime.batch.job_records import NOW, make_job
from tests.runtime.batch.publication.conftest import Jobs, chat

SHARDS = ("s0", "s1", "s2")


@pytest.fixture
def ends(platform_in_process: BatchPlatform) -> Ends:
    return Ends(read_records(os.environ), Objects(resources.BUCKET), resources.BUCKET, lambda *_: None)


@pytest.fixture
def job(jobs: Jobs) -> Job:
    """A job whose shards are done; one of them has no answers."""
    made = jobs.job()
    jobs.part(made, "s0", [chat("a", "one"), chat("b", None)])
    jobs.part(made, "s1", [chat("c", "two")])
    jobs.part(made, "s2", [])
    return made


def listed(job: Job) -> list[str]:
    lines = resources.read_object(JobKeys(job.id).publications).splitlines()
    return [json.loads(line)["part"] for line in lines]


def test_parts_with_answers_are_published_and_then_the_job_is_completed(
    ends: Ends, job: Job, publisher: Publisher
) -> None:
    ends.merge(job.id, 1, now=NOW)
    assert ends.list_publications(job.id) == 2
    assert listed(job) == ["s0", "s1"]
    for part in listed(job):
        publisher.publish(job.id, part)
    ended = ends.finish(job.id, now=NOW)
    assert (ended.state, ended.errors) == ("completed", ())
    assert ended.published == Published(written=2, superseded=0, unfit=1)


def test_a_job_whose_answers_are_not_all_published_fails_and_has_its_files(
    ends: Ends, job: Job, publisher: Publisher, objects: Objects
) -> None:
    ends.merge(job.id, 1, now=NOW)
    ends.list_publications(job.id)
    publisher.publish(job.id, "s1")
    ended = ends.finish(job.id, now=NOW)
    assert (ended.state, [each.code for each in ended.errors]) == ("failed", ["signals_failed"])
    assert ended.output_file_id is not None
    assert ended.published == Published(written=1)
    # Another attempt publishes what is left.
    assert list_unpublished(job.id, objects) == ["s0"]
    assert ends.list_publications(job.id) == 1
    assert listed(job) == ["s0"]


def test_a_redrive_publishes_what_is_left_and_asks_no_model(
    ends: Ends, job: Job, publisher: Publisher, objects: Objects, platform_in_process: BatchPlatform
) -> None:
    keys = JobKeys(job.id)
    description = JobDescription(job.id, job.team, job.model, job.endpoint, deadline=job.expires_at)
    objects.write(keys.description, description.to_json().encode())
    ends.merge(job.id, 1, now=NOW)
    ends.list_publications(job.id)
    failed = ends.finish(job.id, now=NOW)
    platform = platform_in_process
    redriver = Redriver(platform.jobs, objects, platform.executions)
    assert redriver.redrive(failed, now=NOW).attempt == 2
    # A map has to have a child; a worker that is given a shard that is done says so at once.
    assert len(resources.read_object(keys.undone(2)).splitlines()) == 1
    ends.merge(job.id, 2, now=NOW)
    assert ends.list_publications(job.id) == 2
    for part in listed(job):
        publisher.publish(job.id, part)
    ended = ends.finish(job.id, now=NOW)
    assert (ended.state, ended.published.written) == ("completed", 2)


def test_a_part_that_is_not_done_is_not_published(jobs: Jobs, objects: Objects, job: Job) -> None:
    jobs.part(job, "s0.1", [chat("d", "three")])
    assert list_unpublished(job.id, objects) == ["s0", "s0.1", "s1"]
    objects.write(JobKeys(job.id).part("s3").output, b"{}\n")
    assert list_unpublished(job.id, objects) == ["s0", "s0.1", "s1"]


def test_a_job_without_a_signal_publishes_nothing(ends: Ends, platform_in_process: BatchPlatform) -> None:
    job = make_job(platform_in_process)
    platform_in_process.jobs.move(job.id, "in_progress", before=["validating"], now=NOW)
    for shard in SHARDS:
        keys = JobKeys(job.id).shard(shard)
        Objects(resources.BUCKET).write(keys.done, ShardDone(shard, 0, 0, 0).to_json().encode())
    ends.merge(job.id, 1, now=NOW)
    assert ends.list_publications(job.id) == 0
    assert resources.list_keys(JobKeys(job.id).publications) == []
    assert ends.finish(job.id, now=NOW).state == "completed"
