"""Batch workers are those releases whose environment names a queue of shards."""

from __future__ import annotations

from inference_blueprints.local.batch.releases import WorkerRelease, worker_releases
from inference_blueprints.local.emulator.records import RecordedRelease


def release(name, **values):
    return RecordedRelease(name, "inference", "asset", "", rendered=True, values=values)


def test_other_charts_are_no_workers():
    environment = {"BATCH_MODEL": "m", "BATCH_QUEUE_URL": "http://127.0.0.1:1/q"}
    found = worker_releases(
        [
            release("m-main", environment={"HOME": "/"}),
            release("karpenter", settings={}),
            release("m.batch", replicas=2, environment=environment),
        ]
    )
    assert found == [WorkerRelease("m", 2, environment)]
