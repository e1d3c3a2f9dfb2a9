"""Keys are made, rotated and revoked by the rules of the platform, and each act is recorded."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from inference_contracts import door_key_acts
from inference_contracts.door_audit import AuditLog
from inference_contracts.door_configuration import DoorBudget
from inference_contracts.door_key_acts import (
    KeyActs,
    KeyChange,
    KeyConflictError,
    KeyRequest,
    KeyRequestError,
    UnknownKeyError,
)
from inference_contracts.door_key_table import KeyTable
from inference_contracts.door_keys import key_hash, key_id
from tests.runtime.front_door.keys.key_tables import ADMIN, BUCKET, DAY, NOW, TABLE, audit_records

HOUR = 3600


def _made(acts: KeyActs, **facts: Any) -> KeyChange:
    return acts.create(KeyRequest(**{"team": "search", "name": "ci", **facts}), now=NOW)


def _secret(change: KeyChange) -> str:
    assert change.secret is not None
    return change.secret


def test_a_new_key_is_stored_as_a_hash(acts: KeyActs, s3: Any, dynamodb: Any) -> None:
    # The secret in the table or in the record of administration.
    budget = DoorBudget(scope="team", name="", nano_per_month=7)
    made = _made(acts, project="web", models=("qwen3",), days=30, budget=budget)
    found = acts.table.get(made.record.id)
    assert found == made.record
    assert found is not None
    assert key_id(_secret(made)) == found.id
    assert found.hashes == (key_hash(_secret(made)),)
    assert (found.team, found.project, found.models) == ("search", "web", ("qwen3",))
    assert (found.created_by, found.created, found.expires) == (ADMIN, NOW, NOW + 30 * DAY)
    assert found.budget == DoorBudget(scope="key", name=found.id, nano_per_month=7)
    stored = json.dumps([dynamodb.scan(TableName=TABLE)["Items"], [e.to_values() for e in audit_records(s3)]])
    assert _secret(made).rpartition("-")[2] not in stored


def test_a_key_without_a_stated_life_lives_as_long_as_the_platform_allows(acts: KeyActs) -> None:
    assert _made(acts).record.expires == NOW + 90 * DAY
    strict = replace(acts, rules=replace(acts.rules, max_days=7))
    assert _made(strict, name="short").record.expires == NOW + 7 * DAY


def test_a_wrong_request_names_all_faults_and_changes_nothing(acts: KeyActs, s3: Any) -> None:
    with pytest.raises(KeyRequestError) as refused:
        _made(acts, team="sales", name="a\nb", project="a/b", models=("gpt-5", "qwen3"), days=366)
    assert [each.partition(":")[0] for each in refused.value.problems] == [
        *("team", "name", "project", "model", "model", "days"),
    ]
    assert "allowed are search, adverts" in str(refused.value)
    assert "allowed are 1 to 365" in str(refused.value)
    assert list(acts.table.all()) == []
    assert audit_records(s3) == []


def test_a_team_names_only_its_own_models(acts: KeyActs) -> None:
    with pytest.raises(KeyRequestError, match="got 'qwen3', allowed are openai/gpt-oss-120b"):
        _made(acts, team="adverts", models=("qwen3",))


@pytest.mark.parametrize("facts", [{"name": ""}, {"name": "n" * 101}, {"models": ()}, {"days": 0}])
def test_limits_of_a_request(acts: KeyActs, facts: dict[str, Any]) -> None:
    with pytest.raises(KeyRequestError):
        _made(acts, **facts)


def test_a_command_that_is_run_again_makes_no_second_key(acts: KeyActs) -> None:
    made = _made(acts)
    with pytest.raises(KeyRequestError, match=f"has the key {made.record.id} of this name since"):
        _made(acts)
    acts.revoke(made.record.id, now=NOW)
    _made(acts)
    assert [each.revoked for each in acts.list()].count(None) == 1


def test_a_team_has_a_bounded_number_of_keys(acts: KeyActs, monkeypatch: pytest.MonkeyPatch) -> None:
    # Somebody who may make keys fills the memory of all replicas.
    monkeypatch.setattr(door_key_acts, "MOST_KEYS", 2)
    for name in ("one", "two"):
        _made(acts, name=name)
    with pytest.raises(KeyRequestError, match="has 2 valid keys, allowed are 2"):
        _made(acts, name="three")
    _made(acts, team="adverts", name="three")


def test_two_teams_may_use_one_name(acts: KeyActs) -> None:
    _made(acts)
    _made(acts, team="adverts")
    assert {each.team for each in acts.list()} == {"search", "adverts"}
    assert [each.team for each in acts.list(team="adverts")] == ["adverts"]


def test_an_old_secret_is_valid_until_the_overlap_ends(acts: KeyActs) -> None:
    made = _made(acts)
    rotated = acts.rotate(made.record.id, now=NOW + HOUR, overlap_hours=2)
    old, new = key_hash(_secret(made)), key_hash(_secret(rotated))
    assert key_id(_secret(rotated)) == made.record.id
    assert rotated.record.hashes_at(NOW + 3 * HOUR - 1) == (old, new)
    assert rotated.record.hashes_at(NOW + 3 * HOUR) == (new,)
    assert rotated.record.expires == made.record.expires


def test_a_key_is_rotated_again_after_the_overlap(acts: KeyActs) -> None:
    # The oldest secret becomes valid again.
    made = _made(acts)
    second = acts.rotate(made.record.id, now=NOW)
    third = acts.rotate(made.record.id, now=NOW + 25 * HOUR)
    assert third.record.hashes == (key_hash(_secret(second)), key_hash(_secret(third)))


def test_a_lost_secret_is_replaced_without_cutting_off_its_callers(acts: KeyActs) -> None:
    made = _made(acts)
    acts.rotate(made.record.id, now=NOW)
    with pytest.raises(KeyConflictError, match="its old secret is valid until"):
        acts.rotate(made.record.id, now=NOW + 1)
    again = acts.rotate(made.record.id, now=NOW + 1, again=True)
    assert again.record.hashes == (key_hash(_secret(made)), key_hash(_secret(again)))
    assert again.record.old_until == NOW + 24 * HOUR


def test_a_rotation_without_overlap_ends_all_older_secrets(acts: KeyActs) -> None:
    made = _made(acts)
    acts.rotate(made.record.id, now=NOW)
    last = acts.rotate(made.record.id, now=NOW + 1, overlap_hours=0)
    assert last.record.hashes_at(NOW + 1) == (key_hash(_secret(last)),)
    assert last.record.old_until is None


@pytest.mark.parametrize("hours", [-1, 25])
def test_the_overlap_has_a_limit(acts: KeyActs, hours: int) -> None:
    made = _made(acts)
    with pytest.raises(KeyRequestError, match="allowed are 0 to 24"):
        acts.rotate(made.record.id, now=NOW, overlap_hours=hours)


def test_expired_and_revoked_keys_are_not_rotated(acts: KeyActs) -> None:
    made = _made(acts, days=1)
    with pytest.raises(KeyConflictError, match="expired at"):
        acts.rotate(made.record.id, now=NOW + DAY)
    acts.revoke(made.record.id, now=NOW)
    with pytest.raises(KeyConflictError, match="was revoked at"):
        acts.rotate(made.record.id, now=NOW)


def test_a_key_is_revoked_once(acts: KeyActs, s3: Any) -> None:
    made = _made(acts)
    first = acts.revoke(made.record.id, now=NOW + 5)
    second = acts.revoke(made.record.id, now=NOW + 9)
    assert first.record.revoked == NOW + 5
    assert second.record == first.record
    assert len(audit_records(s3)) == 4


def test_a_team_sees_and_changes_only_its_own_keys(acts: KeyActs) -> None:
    # Somebody who knows the identifier of another team's key, which is no secret.
    made = _made(acts)
    others = replace(acts, team="adverts")
    for act in (others.rotate, others.revoke):
        with pytest.raises(UnknownKeyError):
            act(made.record.id, now=NOW)
    with pytest.raises(KeyRequestError, match="got 'search', allowed are adverts"):
        _made(others)
    assert others.list() == []
    assert others.list(team="search") == []
    assert acts.table.get(made.record.id) == made.record


def test_each_act_is_recorded_before_and_after(acts: KeyActs, s3: Any) -> None:
    made = _made(acts)
    acts.rotate(made.record.id, now=NOW + 60)
    acts.revoke(made.record.id, now=NOW + 120)
    records = audit_records(s3)
    assert [(each.act, each.phase) for each in records] == [
        *(("create", "begin"), ("create", "done")),
        *(("rotate", "begin"), ("rotate", "done")),
        *(("revoke", "begin"), ("revoke", "done")),
    ]
    assert {(each.actor, each.way, each.platform, each.key, each.team) for each in records} == {
        (ADMIN, "command", "chat", made.record.id, "search")
    }
    rotation = records[3]
    assert rotation.before is not None
    assert rotation.after is not None
    short = key_hash(_secret(made))[:16]
    assert rotation.before["hashes"] == [short]
    assert rotation.after["hashes"][0] == short
    assert [len(each) for each in rotation.after["hashes"]] == [16, 16]


class Failing:
    """A client of S3 that fails from a given object on."""

    def __init__(self, client: Any, after: int) -> None:
        self._client, self._left = client, after

    def put_object(self, **values: Any) -> Any:
        if not self._left:
            raise ConnectionError("S3 does not answer")
        self._left -= 1
        return self._client.put_object(**values)


def test_nothing_is_done_without_a_record(acts: KeyActs, s3: Any) -> None:
    blind = replace(acts, audit=AuditLog(Failing(s3, 0), BUCKET, "chat"))
    with pytest.raises(ConnectionError):
        _made(blind)
    assert list(acts.table.all()) == []


def test_a_secret_reaches_the_caller_though_its_end_cannot_be_recorded(acts: KeyActs, s3: Any) -> None:
    blind = replace(acts, audit=AuditLog(Failing(s3, 1), BUCKET, "chat"))
    made = _made(blind)
    assert made.secret
    assert made.audit_problem == "ConnectionError: S3 does not answer"
    assert acts.table.get(made.record.id) == made.record


class Racing:
    """A table that another administrator changes just before the write."""

    def __init__(self, table: KeyTable, other: KeyActs) -> None:
        self._table, self._other = table, other

    def get(self, key: str) -> Any:
        return self._table.get(key)

    def put(self, record: Any, *, before: Any) -> Any:
        self._other.revoke(record.id, now=NOW + 1)
        return self._table.put(record, before=before)


def test_a_lost_race_is_an_error_and_recorded_as_one(acts: KeyActs, s3: Any) -> None:
    # A rotation that brings a key back to life that was revoked meanwhile.
    made = _made(acts)
    slow: Any = Racing(acts.table, acts)
    with pytest.raises(KeyConflictError, match="nothing was done, repeat it"):
        replace(acts, table=slow).rotate(made.record.id, now=NOW + 2)
    found = acts.table.get(made.record.id)
    assert found is not None
    assert (found.revoked, len(found.hashes)) == (NOW + 1, 1)
    assert [each.phase for each in audit_records(s3) if each.act == "rotate"] == ["begin", "failed"]


def test_records_are_never_replaced(acts: KeyActs, s3: Any) -> None:
    # An object that is written without `If-None-Match`, so that an older record can be overwritten.
    made = _made(acts)
    begun = audit_records(s3)[0]
    with pytest.raises(s3.exceptions.ClientError, match="PreconditionFailed"):
        acts.audit.end(begun, after=made.record)
