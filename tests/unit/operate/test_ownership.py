"""Platforms belong to a file, and one operation at a time changes them. DynamoDB is moto's."""

from __future__ import annotations

import itertools
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from inference_blueprints.loading import load_blueprint
from inference_blueprints.operate.aws.account import Account
from inference_blueprints.operate.ownership import platform_operation
from inference_blueprints.operate.ownership.platform_operation import (
    PlatformOperation,
    demand_owner,
    file_identity,
)
from inference_blueprints.operate.ownership.platform_table import (
    TABLE,
    ConditionFailedError,
    PlatformTable,
    RunningOperation,
)
from inference_blueprints.operate.versions import keep_lock, kept_lock
from inference_blueprints.spec.lock.lock import lock_path
from inference_blueprints.spec.source import shipped
from inference_contracts.errors import UserError

MINE, OTHER = "0" * 32, "1" * 32
FILE = Path("mine.yaml")


def begun(account: Account, command: str, identity: str | None, *, owns: bool = False) -> PlatformOperation:
    """Return an operation that has begun, and whose process is then killed: nothing renews or ends it."""
    running = PlatformOperation(
        PlatformTable(account), "chat", command=command, operator="ann", file=FILE, identity=identity
    )
    running.begin(owns=owns, takes_over=False, say=lambda _: None)
    return running


@contextmanager
def deploying(account: Account, identity: str | None, **options: Any) -> Iterator[PlatformOperation]:
    defaults = {"command": "deploy", "file": FILE, "say": lambda _: None, "owns": True}
    with platform_operation.platform_operation(
        account, "chat", identity=identity, **{**defaults, **options}
    ) as running:
        yield running


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], None]:
    """Does something in each pause of an operator who waits."""
    return lambda act: monkeypatch.setattr(time, "sleep", lambda _: act())


def test_the_first_deployment_makes_its_file_the_owner_and_another_file_is_refused(account: Account) -> None:
    """A deploy that never looks at the owner turns this red: a second engineer rewrites the platform."""
    with deploying(account, MINE):
        pass
    record = PlatformTable(account).read("chat")
    assert record.owner is not None
    assert (record.owner.identity, record.owner.file, record.operation) == (MINE, "mine.yaml", None)
    for identity in (OTHER, None):
        with pytest.raises(UserError, match=r"another blueprint \(mine.yaml, by .*take-over his.yaml"):
            demand_owner(account, "chat", file=Path("his.yaml"), identity=identity)
        for owns in (True, False):
            with (
                pytest.raises(UserError, match="nothing was changed"),
                deploying(account, identity, owns=owns),
            ):
                pytest.fail("it began")
    with deploying(account, MINE, command="destroy", owns=False):
        pass


def test_what_an_earlier_release_deployed_gets_its_owner_at_the_next_deployment(account: Account) -> None:
    """A refusal for want of an owner turns this red, and so does an owner that `destroy` leaves behind."""
    with deploying(account, None, command="prune", owns=False):
        pass
    assert "Item" not in account.client("dynamodb").get_item(TableName=TABLE, Key={"platform": {"S": "chat"}})
    with deploying(account, MINE):
        pass
    demand_owner(account, "chat", file=FILE, identity=MINE)
    with deploying(account, MINE, command="destroy", owns=False) as running:
        running.forget_platform()
    with deploying(account, OTHER):
        pass


@pytest.mark.parametrize("second", ["deploy", "destroy"])
def test_a_second_operator_is_refused_while_the_first_one_shows_that_it_runs(
    account: Account, elsewhere: Callable[[Callable[[], object]], None], second: str
) -> None:
    """Without the note, a deploy beside a destroy begins and turns this red."""
    first = begun(account, "deploy", MINE, owns=True)
    elsewhere(first.renew)
    said: list[str] = []
    with (
        pytest.raises(UserError, match=r"chat: ann runs `deploy` since .* UTC; nothing was changed\. Wait"),
        deploying(account, MINE, command=second, say=said.append),
    ):
        pytest.fail("it began")
    assert len(said) == 1
    assert first.renew()
    first.end()
    with deploying(account, MINE, command=second, say=said.append):
        pass
    assert len(said) == 1


def test_a_killed_operation_is_replaced_and_one_that_wakes_up_again_knows(account: Account) -> None:
    """A note that nobody removes turns this red, and so does a sleeper that goes on beside its successor."""
    killed = begun(account, "destroy", MINE, owns=True)
    with deploying(account, MINE) as successor:
        assert not killed.renew()
        killed.end()
        assert successor.renew()


def test_of_two_operators_who_find_a_killed_operation_one_begins(account: Account) -> None:
    """A replacement without a condition turns this red: both begin."""
    killed = begun(account, "deploy", MINE, owns=True)
    table = PlatformTable(account)
    notes = [RunningOperation("deploy", name, "now", name) for name in ("ann", "bob")]
    table.begin("chat", notes[0], identity=MINE, dead_beat=killed._note.beat)
    with pytest.raises(ConditionFailedError):
        table.begin("chat", notes[1], identity=MINE, dead_beat=killed._note.beat)


def test_an_answer_that_is_lost_does_not_count_as_another_operator(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    """botocore sends a change again if its answer is lost, and then its own condition no longer holds."""
    running = begun(account, "deploy", MINE, owns=True)
    client: Any = running._table._client
    update = client.update_item

    def twice(**call: Any) -> object:
        update(**call)
        return update(**call)

    monkeypatch.setattr(client, "update_item", twice)
    assert running.renew()


def test_an_operation_that_was_replaced_stops_its_own_command(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A laptop that slept through its lease goes on beside its successor without this."""
    monkeypatch.setattr(platform_operation, "RENEW_SECONDS", 0.0)
    monkeypatch.setattr(PlatformOperation, "renew", lambda _: False)
    with pytest.raises(UserError, match="another operator has begun"), deploying(account, MINE):
        all(itertools.count(1))  # a command without an end


def test_a_platform_is_taken_over_and_the_former_file_is_refused(account: Account) -> None:
    with deploying(account, MINE):
        pass
    with deploying(account, OTHER, command="take-over", file=Path("his.yaml"), takes_over=True):
        pass
    demand_owner(account, "chat", file=Path("his.yaml"), identity=OTHER)
    with pytest.raises(UserError, match=r"belongs to another blueprint \(his.yaml"):
        demand_owner(account, "chat", file=FILE, identity=MINE)


def test_a_take_over_waits_for_the_end_of_what_runs(
    account: Account, elsewhere: Callable[[Callable[[], object]], None]
) -> None:
    first = begun(account, "deploy", MINE, owns=True)
    elsewhere(first.renew)
    with pytest.raises(UserError, match="runs `deploy`"), deploying(account, OTHER, takes_over=True):
        pytest.fail("it took over")


def test_the_identity_moves_with_the_lock_and_not_with_the_blueprint(
    tmp_path: Path, account: Account
) -> None:
    """A clone of a team's repository owns the platform, and another copy of the blueprint does not."""
    file = tmp_path / "mine.yaml"
    shutil.copy(shipped()["quickstart-g6e"], file)
    keep_lock(load_blueprint(str(file)), file)
    clone = tmp_path / "clone/renamed.yaml"
    clone.parent.mkdir()
    shutil.copy(file, clone)
    assert file_identity(account, clone, kept_lock(clone)) is None
    shutil.copy(lock_path(file), lock_path(clone))
    identity = file_identity(account, clone, kept_lock(clone))
    assert identity is not None
    assert identity == file_identity(account, file, kept_lock(file))
    before = lock_path(clone).read_text()
    keep_lock(load_blueprint(str(clone)), clone)
    assert lock_path(clone).read_text() == before


def test_a_shipped_blueprint_belongs_to_who_deploys_it(account: Account) -> None:
    """Two engineers who try the quickstart in one account delete each other's platform without this."""
    path = shipped()["quickstart-g6e"]
    mine = file_identity(account, path, None)
    assert mine == f"quickstart-g6e of {account.caller}"
    with deploying(account, mine, file=path):
        pass
    with pytest.raises(UserError, match="blueprints init quickstart-g6e FILE --name NAME"):
        demand_owner(account, "chat", file=path, identity="quickstart-g6e of somebody else")


def test_a_missing_permission_is_one_line_with_what_to_do(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = PlatformTable(account)

    def denied(**_call: Any) -> None:
        raise ClientError({"Error": {"Code": "AccessDeniedException", "Message": "no"}}, "GetItem")

    monkeypatch.setattr(table._client, "get_item", denied)
    with pytest.raises(UserError, match=f"the table {TABLE} in account .*AccessDenied.*blueprints bootstrap"):
        table.read("chat")


def test_the_table_is_created_once_and_asking_creates_none(account: Account) -> None:
    table = PlatformTable(account)
    assert table.read("chat").owner is None
    assert account.client("dynamodb").list_tables()["TableNames"] == []
    assert table.ensure()
    assert not table.ensure()
