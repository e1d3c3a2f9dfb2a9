"""The worker as the process that a container starts, from the queue to the parts."""

from __future__ import annotations

from typing import Any

from tests.runtime.batch.worker.conftest import Stage
from tests.runtime.batch.worker.jobs import lines, put_job


def test_every_line_of_every_shard_has_its_answer(stage: Stage, s3: Any) -> None:
    job = put_job(s3, {f"{number:05d}": lines(300, f"{number}/") for number in range(3)})
    execution = stage.submit(job)
    worker = stage.start()
    assert stage.wait(execution)["status"] == "SUCCEEDED"
    job.check()
    assert set(stage.endpoint.asked.values()) == {1}
    worker.stop()
