"""The key of each team for the front door, for thousands of requests a second that must not wait for AWS."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final

from batch.worker.bucket_client import in_thread
from batch.worker.metrics import log
from inference_contracts.platform_key_reader import KeysNotReadyError, PlatformKeys, SecretsManager

#: Time between two questions to the reader, which itself asks AWS much more rarely.
_ASK_SECONDS: Final = 5.0


class DoorKeys:
    """Keys of the teams.

    client: boto3's client of Secrets Manager.
    secret: ARN of the secret.
    clock: A clock that only goes forward, in seconds.
    """

    def __init__(
        self, client: SecretsManager, secret: str, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._reader, self._clock = PlatformKeys(client, secret, clock), clock
        self._keys: dict[str, str] = {}
        self._due: dict[str, float] = {}
        self._asking = asyncio.Lock()

    async def of(self, team: str) -> str | None:
        """Return the key of a team. None if there is none yet."""
        if self._is_due(team):
            async with self._asking:
                if self._is_due(team):
                    await self._ask(team)
        return self._keys.get(team)

    async def refused(self, key: str) -> None:
        """Note that the front door does not know a key any more."""
        await in_thread(self._reader.refused, key)
        self._due.clear()

    def _is_due(self, team: str) -> bool:
        return self._clock() >= self._due.get(team, float("-inf"))

    async def _ask(self, team: str) -> None:
        try:
            self._keys[team] = await in_thread(self._reader.key, team)
        except KeysNotReadyError as error:
            log("door_key_missing", team=team, reason=str(error))
        self._due[team] = self._clock() + _ASK_SECONDS
