"""The worker as a process obeys the ceiling that the capacity shift writes."""

from __future__ import annotations

import time
from typing import Any

from boto3.dynamodb.types import TypeSerializer

from inference_blueprints.contracts.batch_environment import CEILINGS_TABLE
from inference_blueprints.contracts.batch_names import ID_ATTRIBUTE
from inference_blueprints.contracts.shift_names import CEILING_AT, CEILING_PLACES, ceiling_identifier
from tests.runtime.batch.worker.conftest import Stage
from tests.runtime.batch.worker.fake_endpoint import Gate, after
from tests.runtime.batch.worker.jobs import MODEL, lines, put_job, wait_until


def put_ceiling(stage: Stage, places: int) -> dict[str, str]:
    """Write a ceiling into a new table, and return what a worker must know of it."""
    name = f"ceilings-{places}"
    dynamodb = stage.emulator.client("dynamodb")
    dynamodb.create_table(
        TableName=name,
        KeySchema=[{"AttributeName": ID_ATTRIBUTE, "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": ID_ATTRIBUTE, "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    record = {CEILING_PLACES: places, CEILING_AT: int(time.time())}
    item = {ID_ATTRIBUTE: ceiling_identifier(MODEL), "record": record}
    serialized = {key: TypeSerializer().serialize(value) for key, value in item.items()}
    dynamodb.put_item(TableName=name, Item=serialized)
    return {CEILINGS_TABLE: name}


def test_without_a_place_it_sends_one_request_at_a_time(stage: Stage, s3: Any) -> None:
    execution = stage.submit(put_job(s3, {"00000": lines(40)}))
    stage.endpoint.behaviour = after(0.02)
    worker = stage.start(put_ceiling(stage, 0))
    assert stage.wait(execution)["status"] == "SUCCEEDED"
    assert stage.endpoint.most_in_flight == 1
    worker.stop()


def test_with_a_place_it_sends_as_without_a_ceiling(stage: Stage, s3: Any) -> None:
    execution = stage.submit(put_job(s3, {"00000": lines(40)}))
    stage.endpoint.behaviour = gate = Gate(0)
    worker = stage.start(put_ceiling(stage, 1))
    wait_until(lambda: stage.endpoint.in_flight > 1, "several requests in flight")
    gate.open()
    assert stage.wait(execution)["status"] == "SUCCEEDED"
    worker.stop()
