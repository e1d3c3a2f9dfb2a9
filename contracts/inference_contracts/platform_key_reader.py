"""Reads a program's keys for the front door from its secret, and reads them again when they change.

The secret gets a new value every month, and for a day the old keys stay valid. So whoever looks every
`LOOK_SECONDS` never has a wrong key. If one is refused all the same, because somebody has revoked it, the
program says so (`refused`), and the secret is read at once.

A secret that was just made has no keys yet: CloudFormation is done when the schedule of its rotation exists,
and the rotation starts then (AWS CloudFormation, `AWS::SecretsManager::RotationSchedule`,
`RotateImmediatelyOnUpdate`). Until it ends, `key` raises KeysNotReadyError, and the program asks again.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

from inference_contracts.platform_keys import LOOK_SECONDS, read_keys

#: Least time between two looks, in seconds, if a key is missing or refused. A replica of the front door knows
#: a new key after a second or two.
LEAST_SECONDS: Final = 5.0

_logger = logging.getLogger(__name__)


class KeysNotReadyError(Exception):
    """There is no key yet: its first rotation has not ended, or has failed."""


class SecretsManager(Protocol):
    """The call of boto3's client of Secrets Manager that a reader needs."""

    def get_secret_value(self, **values: Any) -> Any:
        """Read a secret."""


class PlatformKeys:
    """The keys in a secret, kept up to date. Threads may share it.

    client: boto3's client of Secrets Manager. Its timeouts bound how long `key` takes.
    secret: ARN of the secret.
    clock: A clock that only goes forward, in seconds.
    """

    def __init__(
        self, client: SecretsManager, secret: str, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._client, self._secret, self._clock = client, secret, clock
        self._lock = threading.Lock()
        self._keys: Mapping[str, str] = {}
        self._looked: float | None = None
        self._problem = ""

    def key(self, team: str) -> str:
        """Return the key of a team. It reads the secret if that is due.

        Raises KeysNotReadyError if there is none: ask again some seconds later.
        """
        with self._lock:
            self._look(LOOK_SECONDS if team in self._keys else LEAST_SECONDS)
            found = self._keys.get(team)
        if found is None:
            raise KeysNotReadyError(
                f"secret {self._secret}: got no key for team {team!r}"
                f"{f' ({self._problem})' if self._problem else ''}; its first rotation takes some seconds. "
                "If it stays so, the log of the rotation function says why; "
                f"'aws secretsmanager rotate-secret --secret-id {self._secret}' starts it again"
            )
        return found

    def refused(self, key: str) -> bool:
        """Say that the front door has refused a key (401). Return whether its team has another one now.

        The secret is read at once, but not twice within `LEAST_SECONDS`.
        """
        with self._lock:
            teams = [team for team, own in self._keys.items() if own == key]
            if teams:
                self._look(LEAST_SECONDS)
            return all(self._keys.get(team, key) != key for team in teams)

    def _look(self, seconds: float) -> None:
        """Read the secret if the last look is so long ago. On trouble, what is known stays valid."""
        now = self._clock()
        if self._looked is not None and now - self._looked < seconds:
            return
        self._looked = now
        try:
            value = self._client.get_secret_value(SecretId=self._secret)
            self._keys, self._problem = read_keys(value.get("SecretString") or ""), ""
        except Exception as error:  # noqa: BLE001 -- old keys are valid for a day after a rotation
            self._problem = f"{type(error).__name__}: {error}"
            _logger.warning("keys of the front door were not read from %s: %s", self._secret, self._problem)
