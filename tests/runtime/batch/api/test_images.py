"""Jobs for images: which queues take them, and who can read the images as long as the output file exists."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest

from batch.contracts.generated_image import GeneratedImage
from batch.contracts.request import JobRequest
from batch.jobs.settings import BatchPlatform, read_platform
from batch.objects import Objects
from batch.submission.handlers import build
from inference_contracts.batch_body_fields import BODY_FIELDS, IMAGES_PATH
from inference_contracts.batch_keys import JobKeys
from tests.runtime.batch import resources
from tests.runtime.batch.api.gateway import proxy_event
from tests.runtime.batch.api.requesting import Api
from tests.runtime.batch.job_records import HOUR, NOW
from tests.runtime.batch.scheduling.test_sweeping import end, sweep
from tests.runtime.batch.test_every_call_fails import running

SHARD = "000000-0000-0-000"


@pytest.fixture
def platform(aws: dict[str, str], tmp_path: Path) -> BatchPlatform:
    """A platform with a queue of a model that writes text, and one of a model that makes images."""
    (nightly,) = resources.CONFIGURATION["queues"]
    pictures = {**nightly, "name": "pictures", "model": "z-image", "imageSteps": 9}
    both = {**resources.CONFIGURATION, "queues": [nightly, pictures]}
    file = resources.write_configuration(tmp_path, both)
    return read_platform({**aws, "BATCH_CONFIGURATION": str(file)})


@pytest.fixture
def image(platform: BatchPlatform, monkeypatch: pytest.MonkeyPatch) -> GeneratedImage:
    """An image of a job that is completed, and the present in which its files exist."""
    monkeypatch.setattr(time, "time", lambda: float(NOW))
    job = end(platform, running(platform, "s0", "s1", "s2"))
    assert job.state == "completed"
    image = GeneratedImage(job.id, SHARD, 12, 1, "png")
    Objects(resources.BUCKET).write(image.key, b"image", content_type="image/png")
    return image


def test_an_identifier_names_its_image() -> None:
    image = GeneratedImage("batch_" + "0a" * 16, SHARD, 12, 1, "png")
    assert GeneratedImage.of_file_id(image.file_id) == image
    for other in ("file-" + "0" * 32, image.file_id + "x", image.file_id.replace("0a", "/."), ""):
        assert GeneratedImage.of_file_id(other) is None


@pytest.mark.parametrize("endpoint", BODY_FIELDS)
def test_a_queue_takes_the_requests_that_its_model_answers(platform: BatchPlatform, endpoint: str) -> None:
    api = Api(platform)
    body = {"input_file_id": api.file(), "endpoint": endpoint, "completion_window": "24h"}
    fits, other = ("pictures", "nightly") if endpoint == IMAGES_PATH else ("nightly", "pictures")
    answer = api.post("/v1/batches", {**body, "metadata": {"queue": fits}})
    assert (answer.status, answer.body["queue"]) == (200, fits)
    request = JobRequest.from_json(Objects(resources.BUCKET).read(JobKeys(answer.body["id"]).request))
    assert request.image_steps == (9 if endpoint == IMAGES_PATH else 0)
    refused = api.post("/v1/batches", {**body, "metadata": {"queue": other}})
    assert (refused.status, refused.error["param"]) == (400, "endpoint")
    assert f"got {endpoint}, must be one of /v1/" in refused.error["message"]
    assert refused.error["message"].endswith(f"in queue {other}")


def test_a_manifest_of_a_queue_for_images_needs_no_endpoint(platform: BatchPlatform) -> None:
    event = {
        "schedule": "arn:aws:scheduler:us-west-2:123456789012:schedule/default/nightly",
        "time": "2026-11-21T02:00:00Z",
        "queue": "pictures",
        "team": "search",
        "manifest": {"inputs": ["s3://search-data/prompts/a.jsonl"]},
    }
    job = build(platform).of_schedule(event)
    assert (job.endpoint, job.errors) == (IMAGES_PATH, ())
    wrong = {"inputs": ["s3://search-data/prompts/b.jsonl"], "endpoint": "/v1/embeddings"}
    refused = build(platform).of_schedule({**event, "manifest": wrong, "time": "2026-11-22T02:00:00Z"})
    assert (refused.state, [error.param for error in refused.errors]) == ("failed", ["endpoint"])
    signal = {"inputs": ["s3://search-data/prompts/b.jsonl"], "signal": "product-captions"}
    refused = build(platform).of_schedule({**event, "manifest": signal, "time": "2026-11-23T02:00:00Z"})
    [error] = refused.errors
    assert f"answers of {IMAGES_PATH} are not text" in error.message


def test_the_team_reads_an_image_as_long_as_the_output_file(
    platform: BatchPlatform, image: GeneratedImage
) -> None:
    path = f"/v1/files/{image.file_id}/content"
    answer = Api(platform).get(path)
    assert answer.status == 302
    assert (
        f"{resources.BUCKET}.s3.{resources.REGION}.amazonaws.com/{image.key}?" in answer.headers["location"]
    )
    assert Api(platform, resources.ADVERTS).get(path).status == 404, "of another team"
    unknown = GeneratedImage("batch_" + "0" * 32, SHARD, 12, 1, "png")
    assert Api(platform).get(f"/v1/files/{unknown.file_id}/content").status == 404
    job = platform.jobs.get(image.job)
    assert job is not None
    assert Api(platform).send(proxy_event("DELETE", f"/v1/files/{job.output_file_id}")).status == 200
    assert Api(platform).get(path).status == 404
    sweep(platform, now=NOW + 1)
    assert resources.list_keys(f"jobs/{image.job}/images/") == []


def test_images_are_deleted_with_the_output_file(platform: BatchPlatform, image: GeneratedImage) -> None:
    job = platform.jobs.get(image.job)
    assert job is not None
    assert job.output_file_id is not None
    record = platform.files.get(job.output_file_id, team="search", now=NOW)
    assert record is not None
    platform.files.replace(replace(record, expires_at=NOW + HOUR))
    sweep(platform, now=NOW + HOUR - 1)
    assert resources.list_keys(f"jobs/{image.job}/images/") == [image.key]
    sweep(platform, now=NOW + HOUR)
    assert resources.list_keys(f"jobs/{image.job}/images/") == []
    assert resources.list_keys(f"jobs/{image.job}/output") == []
