"""The steps of a rotation: once, twice, late, never, and with a failure in the middle."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from front_door.key_snapshot import KeySnapshot
from front_door.late_keys import late_keys
from key_rotation.rotation import KeyRotation, RotationError

from inference_contracts.door_audit import Actor, AuditLog
from inference_contracts.door_configuration import DoorModel, DoorPrices
from inference_contracts.door_key_acts import KeyActs, KeyConflictError
from inference_contracts.door_key_document import key_document
from inference_contracts.door_key_table import KeyTable
from inference_contracts.door_keys import key_hash, key_id
from inference_contracts.platform_keys import EXPIRY_DAYS, OVERLAP_HOURS, OWNER_TAG, KeyOwner
from tests.runtime.front_door.keys.conftest import acts, dynamodb, key_table, s3
from tests.runtime.front_door.keys.key_tables import BUCKET, DAY, NOW, audit_records

__all__ = ["acts", "dynamodb", "key_table", "s3"]

ARN = "arn:aws:secretsmanager:us-west-2:123456789012:secret:Batch-AbCdEf"
FUNCTION = "arn:aws:lambda:us-west-2:123456789012:function:rotate:3"
OWNER = KeyOwner("batch", "", ("red", "blue"), ("batch:m",))
ACTOR = Actor(FUNCTION, "rotation")
STEPS = ("createSecret", "setSecret", "testSecret", "finishSecret")


class _NotFoundError(Exception):
    pass


@dataclass
class Secrets:
    """A secret as AWS Secrets Manager keeps it: values and labels by version.

    Of `rotate`: "createSecret" comes when the new version has its label and no value yet (AWS Secrets Manager
    User Guide, "Lambda rotation functions").
    """

    values: dict[str, str] = field(default_factory=lambda: {"first": "gT7!a random password"})
    labels: dict[str, str] = field(default_factory=lambda: {"AWSCURRENT": "first"})
    owner: str = OWNER.tag
    fails: str = ""

    @property
    def exceptions(self) -> Any:
        return type("Exceptions", (), {"ResourceNotFoundException": _NotFoundError})

    def rotate(self, token: str) -> None:
        self.labels["AWSPENDING"] = token

    def describe_secret(self, **_: Any) -> Any:
        stages: dict[str, list[str]] = {}
        for label, version in self.labels.items():
            stages.setdefault(version, []).append(label)
        tags = [{"Key": OWNER_TAG, "Value": self.owner}]
        return {"ARN": ARN, "VersionIdsToStages": stages, "Tags": tags}

    def get_secret_value(self, **asked: Any) -> Any:
        version = asked.get("VersionId") or self.labels[asked["VersionStage"]]
        if version not in self.values:
            raise _NotFoundError
        return {"SecretString": self.values[version]}

    def put_secret_value(self, **given: Any) -> Any:
        token, value = given["ClientRequestToken"], given["SecretString"]
        # "If the version with this value already exists, and that version's SecretString is different, then
        # the request fails": ClientRequestToken of PutSecretValue, AWS Secrets Manager API Reference.
        assert self.values.get(token) in {None, value}
        if self.fails == "put":
            raise ConnectionError("put")
        self.values[token] = value

    def update_secret_version_stage(self, **given: Any) -> Any:
        assert self.labels[given["VersionStage"]] == given["RemoveFromVersionId"]
        if self.fails == "move":
            raise ConnectionError("move")
        self.labels[given["VersionStage"]] = given["MoveToVersionId"]

    def keys(self) -> dict[str, str]:
        """Return what a program reads."""
        found: dict[str, str] = json.loads(self.values[self.labels["AWSCURRENT"]])
        return found


@dataclass
class Platform:
    """A secret, the table, and what the front door admits."""

    secrets: Secrets
    rotation: KeyRotation
    keys: KeySnapshot

    def run(self, *steps: str, version: str = "second", now: float = NOW) -> None:
        for step in steps:
            self.rotation.run(step, ARN, version, actor=ACTOR, now=now)

    def rotate(self, version: str = "second", now: float = NOW) -> dict[str, str]:
        """Do a whole rotation, and return the keys."""
        self.secrets.rotate(version)
        self.run(*STEPS, version=version, now=now)
        return self.secrets.keys()

    def late(self, now: float, *models: DoorModel) -> int:
        """Return the number that raises the alarm `door-platform-keys-late`."""
        self.keys.refresh()
        return late_keys(models or (_model("batch:m"),), self.keys.of_the_platform(), now)

    def admits(self, key: str, now: float) -> bool:
        self.keys.refresh()
        record = self.keys.get(key_id(key) or "")
        return record is not None and key_hash(key) in record.hashes_at(now)


def _model(name: str, *teams: str) -> DoorModel:
    """Return a model of the front door that batch alone may use."""
    return DoorModel(name, (), (), DoorPrices(1, 1), teams or OWNER.teams, 0, 4096, 256, caller="batch")


@pytest.fixture
def platform(key_table: KeyTable, s3: Any) -> Platform:
    secrets = Secrets()
    rotation = KeyRotation(secrets, key_table, AuditLog(s3, BUCKET, "chat"), {OWNER.tag: OWNER})
    return Platform(secrets, rotation, KeySnapshot(key_table))


def test_the_first_rotation_makes_a_key_for_each_team(platform: Platform, s3: Any) -> None:
    """Red if the random value of a new secret is a key, or a key may use more than its owner's models."""
    keys = platform.rotate()
    assert set(keys) == {"red", "blue"}
    assert all(platform.admits(each, NOW) for each in keys.values())
    record = platform.keys.get(key_id(keys["red"]) or "")
    assert record is not None
    assert (record.team, record.caller, record.models, record.name) == ("red", "batch", ("batch:m",), "batch")
    assert record.expires == NOW + EXPIRY_DAYS * DAY
    acts = [(each.act, each.phase, each.actor, each.way) for each in audit_records(s3)]
    # Each key is made by the first step, and changed by the last.
    made = [(act, phase, FUNCTION, "rotation") for act in ("create", "rotate") for phase in ("begin", "done")]
    assert sorted(acts) == sorted(made * 2)


def test_the_old_key_is_valid_for_a_day_after_the_last_step(platform: Platform) -> None:
    """Red if a program that has not looked again yet is refused."""
    old = platform.rotate()["red"]
    later = NOW + 30 * DAY
    new = platform.rotate("third", later)["red"]
    assert key_id(new) == key_id(old)
    end = later + OVERLAP_HOURS * 3600
    assert [platform.admits(old, end - 1), platform.admits(old, end)] == [True, False]
    assert platform.admits(new, later + EXPIRY_DAYS * DAY - 1)


@pytest.mark.parametrize("times", [2, 3])
def test_a_step_that_comes_again_changes_nothing(platform: Platform, times: int) -> None:
    """Red if a retry makes another key, or ends the old one later."""
    old = platform.rotate()["red"]
    platform.secrets.rotate("third")
    for step in STEPS:
        platform.run(*[step] * times, version="third", now=NOW + DAY)
    new = platform.secrets.keys()["red"]
    # Also if the whole rotation comes again when it has ended, and late.
    platform.run(*STEPS, version="third", now=NOW + 1.5 * DAY)
    assert platform.secrets.keys()["red"] == new
    assert platform.admits(new, NOW + 3 * DAY)
    assert [platform.admits(old, NOW + 2 * DAY - 1), platform.admits(old, NOW + 2 * DAY)] == [True, False]


def test_a_failure_between_secret_and_table_makes_no_second_key(
    platform: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    platform.secrets.rotate("second")
    with monkeypatch.context() as broken:
        broken.setattr(KeyTable, "put", _fail)
        with pytest.raises(ConnectionError):
            platform.run("createSecret")
    made = platform.secrets.values["second"]
    with pytest.raises(RotationError, match="is not in the table"):
        platform.run("testSecret")
    platform.run(*STEPS)
    assert platform.secrets.values["second"] == made
    assert platform.admits(platform.secrets.keys()["red"], NOW)


def _fail(*_: object, **__: object) -> None:
    raise ConnectionError("table")


@pytest.mark.parametrize("fails", ["put", "move"])
def test_a_rotation_that_never_ends_leaves_the_old_key(platform: Platform, fails: str) -> None:
    """Red if a function that fails for days takes a program its only key."""
    old = platform.rotate()["red"]
    platform.secrets.rotate("third")
    platform.secrets.fails = fails
    for day in range(1, 20):
        with pytest.raises(ConnectionError):
            platform.run(*STEPS, version="third", now=NOW + day * DAY)
    assert platform.secrets.keys()["red"] == old
    assert platform.admits(old, NOW + 20 * DAY)
    platform.secrets.fails = ""
    platform.run(*STEPS, version="third", now=NOW + 20 * DAY)
    new = platform.secrets.keys()["red"]
    assert new != old
    assert platform.admits(new, NOW + 20 * DAY)
    assert platform.admits(old, NOW + 21 * DAY - 1)


def test_a_rotation_that_was_given_up_costs_no_valid_key(platform: Platform) -> None:
    """Red if the hash of an abandoned version takes the place of the key that a program has."""
    old = platform.rotate()["red"]
    platform.secrets.rotate("third")
    platform.run("createSecret", version="third", now=NOW + DAY)
    abandoned = json.loads(platform.secrets.values["third"])["red"]
    new = platform.rotate("fourth", NOW + 2 * DAY)["red"]
    assert platform.admits(old, NOW + 3 * DAY - 1)
    assert platform.admits(new, NOW + 2 * DAY)
    assert not platform.admits(abandoned, NOW + 2 * DAY)


def test_a_revoked_key_has_a_successor(platform: Platform, acts: KeyActs) -> None:
    old = platform.rotate()
    with pytest.raises(KeyConflictError, match="only the platform's owner may revoke it"):
        replace(acts, team="red").revoke(key_id(old["red"]) or "", now=NOW)
    with pytest.raises(KeyConflictError, match="rotate-secret"):
        acts.rotate(key_id(old["red"]) or "", now=NOW)
    acts.revoke(key_id(old["red"]) or "", now=NOW)
    assert not platform.admits(old["red"], NOW)
    new = platform.rotate("third", NOW + 60)
    assert key_id(new["red"]) != key_id(old["red"])
    assert key_id(new["blue"]) == key_id(old["blue"])
    assert platform.admits(new["red"], NOW + 60)


def test_a_key_that_is_revoked_during_its_rotation_does_not_stop_it(
    platform: Platform, acts: KeyActs
) -> None:
    """Red if the label stays pending: then each later rotation of the secret is refused."""
    platform.secrets.rotate("second")
    platform.run("createSecret")
    acts.revoke(key_id(json.loads(platform.secrets.values["second"])["red"]) or "", now=NOW)
    platform.run(*STEPS)
    assert platform.secrets.labels["AWSCURRENT"] == "second"
    assert not platform.admits(platform.secrets.keys()["red"], NOW)
    assert platform.admits(platform.rotate("third", NOW + 60)["red"], NOW + 60)


def test_a_new_team_and_a_new_model_come_with_the_next_rotation(platform: Platform) -> None:
    platform.rotate()
    wider = replace(OWNER, teams=("red", "green"), models=("batch:m", "batch:n"))
    changed = replace(platform, rotation=replace(platform.rotation, owners={OWNER.tag: wider}))
    keys = changed.rotate("third", NOW + DAY)
    assert set(keys) == {"red", "green"}
    record = changed.keys.get(key_id(keys["red"]) or "")
    assert changed.admits(keys["green"], NOW + DAY)
    record = changed.keys.get(key_id(keys["red"]) or "")
    assert record is not None
    assert record.models == ("batch:m", "batch:n")


@pytest.mark.parametrize(
    ("step", "version", "owner", "message"),
    [
        ("createSecret", "unknown", OWNER.tag, "is not one that is being rotated"),
        ("createSecret", "second", "canary", "its tag inference-blueprints:door-keys is 'canary'"),
        ("deleteSecret", "second", OWNER.tag, "allowed are createSecret"),
    ],
)
def test_other_calls_change_nothing(
    platform: Platform, s3: Any, *, step: str, version: str, owner: str, message: str
) -> None:
    platform.secrets.owner = owner
    platform.secrets.rotate("second")
    with pytest.raises(RotationError, match=message):
        platform.run(step, version=version)
    assert audit_records(s3) == []


def test_lists_say_whose_key_it_is_and_teams_may_have_one_of_its_name(
    platform: Platform, acts: KeyActs
) -> None:
    platform.rotate()
    assert {key_document(each, NOW)["caller"] for each in acts.list()} == {"batch"}


@pytest.mark.parametrize("fails", ["put", "move", ""])
def test_a_rotation_that_does_not_end_is_late_after_two_days(platform: Platform, fails: str) -> None:
    """Red if it counts while it may still end by itself, or not although programs have no other key soon.

    fails: The call that fails. Empty if nobody calls the function.
    """
    platform.rotate()
    due = NOW + 30 * DAY
    platform.secrets.rotate("third")
    platform.secrets.fails = fails
    if fails:
        with pytest.raises(ConnectionError):
            platform.run(*STEPS, version="third", now=due)
    assert [platform.late(due + days * DAY) for days in (0, 1.9, 2.1, 40)] == [0, 0, 2, 2]
    platform.secrets.fails = ""
    platform.run(*STEPS, version="third", now=due + 3 * DAY)
    assert [platform.late(due + days * DAY) for days in (3, 31, 36)] == [0, 0, 2]


def test_a_first_rotation_that_does_not_end_is_late_too(platform: Platform) -> None:
    """Red if the keys of a version that no program reads pass for rotated ones."""
    assert platform.late(NOW) == 2
    platform.secrets.rotate("second")
    platform.secrets.fails = "move"
    with pytest.raises(ConnectionError):
        platform.run(*STEPS)
    assert [platform.late(NOW + days * DAY) for days in (0, 1.9, 2.1)] == [0, 0, 2]
    platform.secrets.fails = ""
    platform.run(*STEPS)
    assert platform.late(NOW + 3 * DAY) == 0


def test_only_what_the_front_door_asks_for_can_be_late(platform: Platform) -> None:
    """Red if the keys of a removed team raise an alarm, or those of a new team or model do not."""
    platform.rotate()
    models = _model("batch:m", "red", "green"), _model("batch:n", "red"), replace(_model("m"), caller=None)
    assert platform.late(NOW, *models) == 2
    wider = replace(OWNER, teams=("red", "green"), models=("batch:m", "batch:n"))
    changed = replace(platform, rotation=replace(platform.rotation, owners={OWNER.tag: wider}))
    changed.rotate("third", NOW + 10 * DAY)
    # The key of blue is not rotated any more.
    assert [changed.late(NOW + days * DAY, *models) for days in (10, 39, 43)] == [0, 0, 3]
