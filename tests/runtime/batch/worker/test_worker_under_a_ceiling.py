"""The worker as a process obeys the ceiling that the capacity shift writes."""

from __future__ import annotations

import time
from typing import Any

import pytest
from boto3.dynamodb.types import TypeSerializer

from inference_contracts.batch_names import CEILINGS_TABLE, ID_ATTRIBUTE
from inference_contracts.shift_names import CEILING_AT, CEILING_PLACES, ceiling_identifier
from tests.runtime.batch.worker.conftest import Stage
from tests.runtime.batch.worker.fake_endpoint import Gate, after
from tests.runtime.batch.worker.jobs import MODEL, lines, put_job, wait_until


def put_ceiling(stage: Stage, places: int, name: str) -> dict[str, str]:
    """Write a ceiling into a new table, and return what a worker must know of it."""
    dynamodb = stage.emulator.client("dynamodb")
    dynamodb.create_table(
        TableName=name,
        KeySchema=[{"AttributeName": ID_ATTRIBUTE, "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": ID_ATTRIBUTE, "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    write_ceiling(stage, places, name)
    return {CEILINGS_TABLE: name}


def write_ceiling(stage: Stage, places: int, name: str) -> None:
    record = {CEILING_PLACES: places, CEILING_AT: int(time.time())}
    item = {ID_ATTRIBUTE: ceiling_identifier(MODEL), "record": record}
    serialized = {key: TypeSerializer().serialize(value) for key, value in item.items()}
    stage.emulator.client("dynamodb").put_item(TableName=name, Item=serialized)


@pytest.mark.clock
def test_without_a_place_it_sends_one_request_at_a_time(stage: Stage, s3: Any) -> None:
    execution = stage.submit(put_job(s3, {"00000": lines(40)}))
    stage.endpoint.behaviour = after(0.02)
    worker = stage.start(put_ceiling(stage, 0, "without"))
    assert stage.wait(execution)["status"] == "SUCCEEDED"
    assert stage.endpoint.max_in_flight == 1
    worker.stop()


@pytest.mark.clock
def test_with_a_place_it_sends_as_without_a_ceiling(stage: Stage, s3: Any) -> None:
    execution = stage.submit(put_job(s3, {"00000": lines(40)}))
    stage.endpoint.behaviour = gate = Gate(0)
    worker = stage.start(put_ceiling(stage, 1, "with"))
    wait_until(lambda: stage.endpoint.in_flight > 1, "several requests in flight")
    gate.open()
    assert stage.wait(execution)["status"] == "SUCCEEDED"
    worker.stop()


@pytest.mark.faults
def test_batch_leaves_a_deployment_and_comes_back_with_its_place(stage: Stage, s3: Any) -> None:
    text = lines(500)
    execution = stage.submit(put_job(s3, {"00000": text}))
    stage.endpoint.behaviour = after(1.0)
    worker = stage.start(put_ceiling(stage, 1, "falling"))
    wait_until(lambda: stage.endpoint.in_flight >= 8, "several requests in flight")
    write_ceiling(stage, 0, "falling")
    wait_until(lambda: stage.endpoint.in_flight <= 1, "batch has left")
    # It goes on with one request at a time, and comes back with its place.
    write_ceiling(stage, 1, "falling")
    stage.endpoint.behaviour = after(0.02)
    assert stage.wait(execution)["status"] == "SUCCEEDED"
    assert stage.endpoint.number == len(stage.endpoint.asked) == len(text)
    worker.stop()
