"""Administrators who act at the same time, at the emulator's DynamoDB."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from inference_contracts.door_key_acts import KeyConflictError, KeyRequest
from inference_contracts.door_key_table import BUCKETS, buckets
from inference_contracts.door_keys import key_hash
from tests.runtime.front_door.clients.conftest import RunningDoor

pytestmark = pytest.mark.clock

AT_ONCE = 8


def _outcomes(act: Callable[[], object]) -> list[object]:
    """Return what several threads got that did the same at the same time."""

    def one(_: int) -> object:
        try:
            return act()
        except KeyConflictError as error:
            return error

    with ThreadPoolExecutor(AT_ONCE) as threads:
        return list(threads.map(one, range(AT_ONCE)))


def test_one_of_several_rotations_wins(door: RunningDoor) -> None:
    """Two administrators get a secret each, and one of the two is not valid."""
    made = door.acts.create(KeyRequest(team="red", name="raced"), now=time.time())
    outcomes = _outcomes(lambda: door.acts.rotate(made.record.id, now=time.time()).secret)
    [secret] = [each for each in outcomes if isinstance(each, str)]
    found = door.acts.get(made.record.id)
    assert found.hashes == (*made.record.hashes, key_hash(secret))
    assert found.change > made.record.change


def test_all_keys_that_are_made_at_once_have_numbers_of_their_own(door: RunningDoor) -> None:
    """A reader that asks for what is new never sees a key whose number another key has too."""
    names = iter(range(10**6))
    outcomes = _outcomes(
        lambda: [
            door.acts.create(KeyRequest(team="red", name=f"at once {next(names)}"), now=time.time()).record
            for _ in range(BUCKETS // 2)
        ]
    )
    assert all(isinstance(each, list) for each in outcomes)
    for bucket in buckets():
        numbers = [each.change for each in door.acts.table.changes_after(bucket, 0)]
        assert len(set(numbers)) == len(numbers)
        assert numbers == sorted(numbers)
