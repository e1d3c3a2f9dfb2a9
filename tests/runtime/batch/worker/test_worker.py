"""The worker as the process that a container starts, from the queue to the parts."""

from __future__ import annotations

from typing import Any

import pytest

from inference_contracts.batch_limits import OBJECTS_PER_SHARD
from tests.runtime.batch.worker.conftest import Stage
from tests.runtime.batch.worker.jobs import BUCKET, lines, put_job

pytestmark = pytest.mark.clock


def test_every_line_of_every_shard_has_its_answer(stage: Stage, s3: Any) -> None:
    job = put_job(s3, {f"{number:05d}": lines(300, f"{number}/") for number in range(3)})
    execution = stage.submit(job)
    worker = stage.start()
    assert stage.wait(execution)["status"] == "SUCCEEDED"
    job.check()
    left = s3.list_objects_v2(Bucket=BUCKET, Prefix=job.keys.parts)["Contents"]
    assert len(left) == len(job.shards) * OBJECTS_PER_SHARD
    assert set(stage.endpoint.asked.values()) == {1}
    worker.stop()
