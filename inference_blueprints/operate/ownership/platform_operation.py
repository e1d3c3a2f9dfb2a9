"""An operation that changes a platform: only for its own file, and never two at once.

Nobody compares clocks. An operation changes a random text in its entry every `RENEW_SECONDS`. Another
operator who finds the entry watches it by a clock of its own: if the text changes, the operation runs; if it
does not change for `LEASE_SECONDS`, the operation was killed, and its entry is replaced. This is the protocol
of awslabs/dynamodb-lock-client (AWS Database Blog, "Building Distributed Locks with the DynamoDB Lock
Client").
"""

from __future__ import annotations

import secrets
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType

from inference_blueprints.operate.aws.account import Account
from inference_blueprints.operate.ownership.platform_table import (
    ConditionFailedError,
    PlatformOwner,
    PlatformTable,
    RunningOperation,
)
from inference_blueprints.operate.versions import is_shipped
from inference_blueprints.spec.lock.lock import Lock, lock_path
from inference_contracts.errors import UserError

#: Seconds between two signs of life of an operation.
RENEW_SECONDS = 15.0
#: Seconds without a sign of life after which an operation counts as killed.
LEASE_SECONDS = 60.0
_POLL_SECONDS = 5.0
_BEAT_BYTES = 8


def file_identity(account: Account, path: Path, lock: Lock | None) -> str | None:
    """Return the identity of a blueprint; None if it has none yet.

    A shipped blueprint has no lock. What somebody deploys from it belongs to this caller.

    path: The blueprint's file.
    Raises SignInError if the blueprint is a shipped one and the credentials are not valid.
    """
    if is_shipped(path):
        return f"{path.stem} of {account.caller}"
    return lock.identity if lock else None


def demand_owner(account: Account, platform: str, *, file: Path, identity: str | None) -> None:
    """Refuse a file to which the platform does not belong.

    file, identity: The operator's blueprint.
    Raises UserError if the platform belongs to another file, or AWS cannot be asked.
    """
    owner = PlatformTable(account).read(platform).owner
    if owner is not None and owner.identity != identity:
        raise _belongs_to_another(platform, owner, file)


class PlatformOperation:
    """A running operation.

    table: The account's table.
    operator: Who runs it.
    """

    def __init__(
        self,
        table: PlatformTable,
        platform: str,
        *,
        command: str,
        operator: str,
        file: Path,
        identity: str | None,
    ) -> None:
        self._table = table
        self._platform = platform
        self._file = file
        self._identity = identity
        self._now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
        self._note = RunningOperation(command, operator, self._now, secrets.token_hex(_BEAT_BYTES))
        self._forgets = False

    def begin(self, *, owns: bool, takes_over: bool, say: Callable[[str], None]) -> None:
        """Begin, or refuse.

        owns: Whether the platform belongs to this file from now on, if it has no owner.
        takes_over: Whether it does so whoever is its owner.
        say: Called with a line if another operation may run, before it is watched.
        Raises UserError if the platform belongs to another file, another operation runs, or AWS refuses a
            call.
        """
        owner = None
        if (owns or takes_over) and self._identity is not None:
            owner = PlatformOwner(self._identity, self._file.name, self._note.operator, self._now)
        dead_beat: str | None = None
        while True:
            try:
                self._table.begin(
                    self._platform,
                    self._note,
                    identity=self._identity,
                    owner=owner,
                    takes_over=takes_over,
                    dead_beat=dead_beat,
                )
            except ConditionFailedError:
                found = self._table.read(self._platform)
            else:
                return
            if not takes_over and found.owner is not None and found.owner.identity != self._identity:
                raise _belongs_to_another(self._platform, found.owner, self._file)
            if found.operation is None:
                continue
            say(f"{_described(found.operation)}; looking for {LEASE_SECONDS:.0f} seconds if it still does")
            dead_beat = self._watched(found.operation)

    def _watched(self, running: RunningOperation) -> str:
        """Return the beat of an operation that shows no sign of life; refuse one that does."""
        for _ in range(round(LEASE_SECONDS / _POLL_SECONDS)):
            time.sleep(_POLL_SECONDS)
            now = self._table.read(self._platform).operation
            if now is None:
                break
            if now.beat != running.beat:
                raise UserError(
                    f"{self._platform}: {_described(now)}; nothing was changed. Wait until it has ended, "
                    "then run this command again"
                )
        return running.beat

    def renew(self) -> bool:
        """Show that this operation runs; return whether it is still the one that may.

        Raises UserError if AWS refuses the call.
        """
        following = secrets.token_hex(_BEAT_BYTES)
        try:
            self._table.renew(self._platform, self._note.beat, following)
        except ConditionFailedError:
            return False
        self._note = RunningOperation(self._note.command, self._note.operator, self._note.since, following)
        return True

    def forget_platform(self) -> None:
        """Say that the platform is gone: its name is free when this operation ends."""
        self._forgets = True

    def end(self) -> None:
        """End. The entry stays only if the platform has an owner.

        Raises UserError if AWS refuses the call.
        """
        forget = self._forgets or self._table.read(self._platform).owner is None
        self._table.end(self._platform, self._note.beat, forget=forget)


@contextmanager
def platform_operation(
    account: Account,
    platform: str,
    *,
    command: str,
    file: Path,
    identity: str | None,
    say: Callable[[str], None],
    owns: bool = False,
    takes_over: bool = False,
) -> Iterator[PlatformOperation]:
    """Change a platform alone. If another operator replaces this operation, the main thread is interrupted.

    command: Name of the command, for other operators.
    say: Called with a line while it waits for the end of a killed operation.
    owns: Whether a platform without an owner belongs to this file from now on.
    takes_over: Whether it belongs to this file from now on whoever is its owner.
    Raises UserError if the platform belongs to another file, another operation runs, or AWS refuses a call.
    """
    operator = f"{account.caller} on {socket.gethostname()}"
    running = PlatformOperation(
        PlatformTable(account), platform, command=command, operator=operator, file=file, identity=identity
    )
    running.begin(owns=owns, takes_over=takes_over, say=say)
    ended, replaced = threading.Event(), threading.Event()
    # Not SIGINT: shells ignore it for what they start in the background (POSIX, "Asynchronous AND-OR Lists").
    former = signal.signal(signal.SIGUSR1, _interrupt)
    renewal = threading.Thread(target=_renew, args=(running, ended, replaced), daemon=True)
    try:
        renewal.start()
        yield running
    except KeyboardInterrupt:
        if replaced.is_set():
            raise UserError(
                f"{platform}: stopped, because it gave no sign of life for {LEASE_SECONDS:.0f} seconds and "
                "another operator has begun; when that one has ended, run this command again"
            ) from None
        raise
    finally:
        ended.set()
        renewal.join()
        signal.signal(signal.SIGUSR1, former)
        try:
            running.end()
        except UserError as error:  # the operation itself has ended as it has
            say(f"{error}; other operators wait for the end of this one for {LEASE_SECONDS:.0f} seconds")


def _renew(running: PlatformOperation, ended: threading.Event, replaced: threading.Event) -> None:
    """Renew an operation until it has ended; interrupt the main thread if another one has replaced it."""
    while not ended.wait(RENEW_SECONDS):
        try:
            if running.renew():
                continue
        except UserError:  # the network may come back before another operator replaces this operation
            continue
        replaced.set()
        main = threading.main_thread().ident
        if main is not None and not ended.is_set():
            signal.pthread_kill(main, signal.SIGUSR1)
        return


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _described(running: RunningOperation) -> str:
    return f"{running.operator} runs `{running.command}` since {running.since}"


def _belongs_to_another(platform: str, owner: PlatformOwner, file: Path) -> UserError:
    """Return the error for a platform of another file."""
    if is_shipped(file):
        other = f"copy the shipped blueprint under another name: blueprints init {file.stem} FILE --name NAME"
    else:
        other = (
            "if it is a platform of its own, give it another metadata.name; if it is a copy of that "
            f"blueprint, put that one's lock next to it, as {lock_path(file).name}"
        )
    return UserError(
        f"{file}: the platform {platform} in this account and region belongs to another blueprint "
        f"({owner.file}, by {owner.operator} on {owner.since}), and nothing was changed; {other}. If that "
        f"blueprint is lost, or should no longer own the platform, run: blueprints take-over {file}"
    )
