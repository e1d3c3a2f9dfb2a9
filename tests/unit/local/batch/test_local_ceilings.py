"""Places of batch in a local run, where no function of the capacity shift sets them."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import yaml

from inference_blueprints.loading import parse_blueprint
from inference_contracts import batch_names
from inference_contracts.batch_limits import SHARDS_PER_WORKER
from inference_contracts.shift_names import ceiling_identifier, deadlines_identifier
from inference_local.batch import local_batch
from inference_local.batch.local_batch import LocalBatch
from tests.templates.shared_platform import document


class Records:
    """The table of batch's records, as a client of DynamoDB writes and reads it."""

    def __init__(self) -> None:
        self.items: dict[str, Any] = {}

    def put_item(self, *, TableName: str, Item: dict[str, Any]) -> None:  # noqa: N803 - its parameters
        assert TableName == "records"
        self.items[Item["id"]["S"]] = Item

    def get_item(self, *, TableName: str, Key: dict[str, Any]) -> dict[str, Any]:  # noqa: N803
        assert TableName == "records"
        found = self.items.get(Key["id"]["S"])
        return {"Item": found} if found else {}


@pytest.fixture
def records() -> Records:
    return Records()


@pytest.fixture
def batch(records: Records, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LocalBatch:
    releases = [
        SimpleNamespace(model="nightly", replicas=1, environment={batch_names.CEILINGS_TABLE: "records"}),
        SimpleNamespace(model="other", replicas=1, environment={}),
    ]
    monkeypatch.setattr(local_batch, "worker_releases", lambda _: releases)
    monkeypatch.setattr(local_batch, "worker_services", lambda _: [])
    monkeypatch.setattr(local_batch, "LocalBatchWorkers", lambda *_: None)
    monkeypatch.setattr(local_batch, "find_batch", lambda *_: None)
    emulator = SimpleNamespace(client=lambda _: records, recorded_releases=list, environment=dict)
    blueprint = parse_blueprint(yaml.safe_dump(document()), "shared.yaml").blueprint
    return LocalBatch(blueprint, cast(Any, emulator), (), tmp_path, cast(Any, None))


def test_batch_has_all_of_its_places_where_nothing_shifts(batch: LocalBatch, records: Records) -> None:
    """Red if no ceiling is written: the scheduler of batch gives no place without one, so no job begins."""
    batch.lend()
    assert records.items.keys() == {ceiling_identifier("nightly")}, "others have no ceiling"
    written = records.items[ceiling_identifier("nightly")]["record"]["M"]
    assert int(written["places"]["N"]) % SHARDS_PER_WORKER == 0
    assert int(written["places"]["N"]) > 0
    batch.lend({"nightly": 3})
    assert records.items[ceiling_identifier("nightly")]["record"]["M"]["places"]["N"] == "3"


def test_what_deadlines_need_is_what_the_scheduler_wrote(batch: LocalBatch, records: Records) -> None:
    assert batch.needed_places("nightly") is None
    record = {"M": {"places": {"N": "7"}, "at": {"N": "1"}}}
    records.items[deadlines_identifier("nightly")] = {"record": record}
    assert batch.needed_places("nightly") == 7
