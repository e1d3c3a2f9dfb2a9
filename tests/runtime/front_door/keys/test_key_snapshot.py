"""The snapshot of keys reads what has changed, and asks for no more."""

from __future__ import annotations

import collections
from dataclasses import replace
from typing import Any

import pytest
from front_door.key_snapshot import KeySnapshot

from inference_contracts.door_key_table import KeyTable, bucket_of
from tests.runtime.front_door.keys.key_tables import NOW, TABLE, record


class Watched:
    """DynamoDB, with the number of its calls, and with what it hides of the next queries or leaves out."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self.calls: collections.Counter[str] = collections.Counter()
        self.hidden: set[str] = set()
        self.is_busy = False

    def query(self, **asked: Any) -> Any:
        self.calls["query"] += 1
        page = self._client.query(**asked)
        shown = [item for item in page["Items"] if not any(f'"{each}"' in str(item) for each in self.hidden)]
        return {**page, "Items": shown}

    def batch_get_item(self, **asked: Any) -> Any:
        self.calls["batch_get_item"] += 1
        if self.is_busy:
            return {"Responses": {}, "UnprocessedKeys": asked["RequestItems"]}
        return self._client.batch_get_item(**asked)


class Clock:
    """A clock that the test sets."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def watched(dynamodb: Any) -> Watched:
    return Watched(dynamodb)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def keys(watched: Watched, clock: Clock) -> KeySnapshot:
    return KeySnapshot(KeyTable(watched, TABLE), clock)  # type: ignore[arg-type]  # it only reads


def test_a_quiet_table_is_asked_one_question(
    key_table: KeyTable, keys: KeySnapshot, watched: Watched, clock: Clock
) -> None:
    written = key_table.put(record(), before=None)
    keys.refresh()
    clock.now += 31
    watched.calls.clear()
    keys.refresh()
    assert watched.calls == {"batch_get_item": 1}
    key_table.put(replace(written, revoked=NOW), before=written)
    keys.refresh()
    assert keys.get(written.id) is None
    # Only the bucket of the key was read.
    assert watched.calls == {"batch_get_item": 2, "query": 1}


def test_a_change_that_a_query_shows_after_a_later_one_is_found(
    key_table: KeyTable, keys: KeySnapshot, watched: Watched, clock: Clock
) -> None:
    first = key_table.put(record(), before=None)
    second = record()
    while bucket_of(second.id) != bucket_of(first.id):
        second = record()
    key_table.put(second, before=None)
    watched.hidden = {first.id}
    keys.refresh()
    assert keys.get(second.id)
    assert keys.get(first.id) is None
    watched.hidden = set()
    clock.now += 1
    keys.refresh()
    assert keys.get(first.id)


def test_buckets_without_an_answer_are_read(key_table: KeyTable, keys: KeySnapshot, watched: Watched) -> None:
    written = key_table.put(record(), before=None)
    watched.is_busy = True
    keys.refresh()
    assert keys.get(written.id)
