"""Each change of a key has the next number of its bucket, and no reader misses one."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from botocore.exceptions import ClientError

from inference_contracts.door_configuration import DoorBudget
from inference_contracts.door_key_table import (
    OVERLAP,
    BusyTableError,
    ChangedMeanwhileError,
    KeyTable,
    bucket_of,
    buckets,
)
from inference_contracts.door_keys import KeyRecord, key_hash, key_id, new_key
from tests.runtime.front_door.keys.key_tables import DAY, NOW, TABLE, record


def _same_bucket(count: int) -> list[KeyRecord]:
    """Return records of one bucket."""
    found: list[KeyRecord] = []
    while len(found) < count:
        made = record()
        if not found or bucket_of(made.id) == bucket_of(found[0].id):
            found.append(made)
    return found


class Racing:
    """A client of DynamoDB before whose transactions somebody else acts."""

    def __init__(self, client: Any, *acts: Callable[[], object]) -> None:
        self._client, self._acts = client, list(acts)

    def get_item(self, **values: Any) -> Any:
        return self._client.get_item(**values)

    def batch_get_item(self, **values: Any) -> Any:
        return self._client.batch_get_item(**values)

    def query(self, **values: Any) -> Any:
        return self._client.query(**values)

    def transact_write_items(self, **values: Any) -> Any:
        if self._acts:
            self._acts.pop(0)()
        return self._client.transact_write_items(**values)


def test_a_record_is_read_as_it_was_written(key_table: KeyTable) -> None:
    # A field that the document loses or turns into another type.
    budget = DoorBudget(scope="key", name="*", nano_per_day=5_000_000_000, requests_per_minute=60)
    made = record(
        project="ads", models=("openai/gpt-oss-120b",), budget=budget, old_until=NOW + 60, name="ci"
    )
    written = key_table.put(made, before=None)
    assert written == replace(made, change=1)
    assert key_table.get(made.id) == written
    assert list(key_table.all()) == [written]


def test_an_unknown_key_and_the_name_of_a_counter_have_no_record(key_table: KeyTable) -> None:
    key_table.put(record(), before=None)
    assert [key_table.get(each) for each in ("000000000000", "#")] == [None, None]


def test_a_field_of_a_newer_release_is_left_out(dynamodb: Any, key_table: KeyTable) -> None:
    # Replicas that stop to read keys, because a newer command has written one.
    made = key_table.put(record(), before=None)
    [item] = [each for each in dynamodb.scan(TableName=TABLE)["Items"] if "record" in each]
    item["record"] = {"S": json.dumps({**json.loads(item["record"]["S"]), "newer": 1})}
    dynamodb.put_item(TableName=TABLE, Item=item)
    assert list(key_table.all()) == [made]


def test_changes_of_a_bucket_have_consecutive_numbers(key_table: KeyTable) -> None:
    # Numbers from a clock: two changes within a millisecond, or a clock that jumps back, hide a change.
    first, second = _same_bucket(2)
    written = [key_table.put(each, before=None) for each in (first, second)]
    written.append(key_table.put(replace(written[0], revoked=NOW), before=written[0]))
    assert [each.change for each in written] == [1, 2, 3]
    bucket = bucket_of(first.id)
    assert list(key_table.changes_after(bucket, 0)) == written[1:]
    assert [list(key_table.changes_after(each, 0)) for each in buckets() if each != bucket] == [[]] * 7


def test_readers_ask_again_for_the_last_numbers(key_table: KeyTable) -> None:
    # A reader that saw change 70 before change 69 was visible, and never asks for 69 again.
    made = key_table.put(record(), before=None)
    for _ in range(OVERLAP + 5):
        made = key_table.put(made, before=made)
    bucket = bucket_of(made.id)
    assert [each.change for each in key_table.changes_after(bucket, made.change)] == [made.change]
    assert list(key_table.changes_after(bucket, made.change + OVERLAP)) == []


def test_long_answers_have_several_pages(key_table: KeyTable) -> None:
    # Only the first megabyte of an answer is read.
    made = [record(name="n" * 300_000) for _ in range(12)]
    for each in made:
        key_table.put(each, before=None)
    assert {each.id for each in key_table.all()} == {each.id for each in made}


def test_who_loses_a_race_for_a_key_changes_nothing(dynamodb: Any, key_table: KeyTable) -> None:
    # A revocation that a rotation, which read the key before it, undoes.
    made = key_table.put(record(), before=None)
    racing = Racing(dynamodb, lambda: key_table.put(replace(made, revoked=NOW), before=made))
    with pytest.raises(ChangedMeanwhileError):
        KeyTable(racing, TABLE).put(replace(made, hashes=("new",)), before=made)
    found = key_table.get(made.id)
    assert found is not None
    assert (found.revoked, found.hashes) == (NOW, made.hashes)


def test_an_identifier_is_given_once(key_table: KeyTable) -> None:
    made = key_table.put(record(), before=None)
    with pytest.raises(ChangedMeanwhileError):
        key_table.put(replace(made, team="adverts"), before=None)
    assert key_table.get(made.id) == made


def test_changes_of_other_keys_delay_a_change_only(dynamodb: Any, key_table: KeyTable) -> None:
    first, *others = _same_bucket(4)
    acts = [lambda each=each: key_table.put(each, before=None) for each in others]
    pauses: list[float] = []
    written = KeyTable(Racing(dynamodb, *acts), TABLE, pauses.append).put(first, before=None)
    assert written.change == 4
    assert len(pauses) == 3
    changes = list(key_table.changes_after(bucket_of(first.id), 0))
    assert [each.change for each in changes] == [1, 2, 3, 4]


def test_a_table_that_is_always_busy_is_an_error(dynamodb: Any, key_table: KeyTable) -> None:
    first, *others = _same_bucket(12)
    acts = [lambda each=each: key_table.put(each, before=None) for each in others]
    with pytest.raises(BusyTableError):
        KeyTable(Racing(dynamodb, *acts), TABLE, lambda _: None).put(first, before=None)
    assert key_table.get(first.id) is None


def test_other_errors_of_the_table_are_not_hidden(dynamodb: Any) -> None:
    with pytest.raises(ClientError):
        KeyTable(dynamodb, "no-such-table").put(record(), before=None)


def test_a_rotated_key_has_both_secrets_until_the_overlap_ends() -> None:
    rotated = record(hashes=("old", "new"), old_until=NOW + 60)
    assert rotated.hashes_at(NOW + 59) == ("old", "new")
    assert rotated.hashes_at(NOW + 60) == ("new",)
    assert replace(rotated, expires=NOW + 30).hashes_at(NOW + 30) == ()
    assert replace(rotated, revoked=NOW + 1).hashes_at(NOW) == ()


def test_a_new_key_has_no_old_secret() -> None:
    assert record(hashes=("one",)).hashes_at(NOW + 89 * DAY) == ("one",)


def test_a_key_has_its_identifier_and_no_other_form() -> None:
    made = new_key()
    assert key_id(made.secret) == made.id
    assert len(key_hash(made.secret)) == 64
    wrong = ("", "ibk-", f"{made.secret}0", made.secret[:-1], f" {made.secret}", f"{made.secret}\n", "sk-x")
    assert [key_id(each) for each in wrong] == [None] * len(wrong)
