"""The key of each team for the front door, from a secret whose value changes while the worker runs."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from botocore.exceptions import BotoCoreError, ClientError

from batch.worker.bucket_client import in_thread
from batch.worker.metrics import log
from inference_contracts.platform_keys import LOOK_SECONDS, read_keys

#: Least time between two looks: a key that is refused again and again does not ask AWS each time.
_AGAIN_SECONDS: Final = 5.0


class DoorKeys:
    """Keys of the teams.

    client: boto3's client of Secrets Manager.
    secret: ARN of the secret.
    """

    def __init__(self, client: Any, secret: str) -> None:
        self._client, self._secret = client, secret
        self._keys: Mapping[str, str] = {}
        self._looked_at = self._due_at = float("-inf")
        self._looking = asyncio.Lock()

    async def of(self, team: str) -> str | None:
        """Return the key of a team. None if the secret has none, or cannot be read yet."""
        if team not in self._keys:
            self._hurry()
        if self._is_due:
            async with self._looking:
                if self._is_due:
                    await self._look()
        return self._keys.get(team)

    def refused(self, key: str) -> None:
        """Note that the front door does not know a key any more."""
        if key in self._keys.values():
            self._hurry()

    def _hurry(self) -> None:
        self._due_at = min(self._due_at, self._looked_at + _AGAIN_SECONDS)

    @property
    def _is_due(self) -> bool:
        return asyncio.get_running_loop().time() >= self._due_at

    async def _look(self) -> None:
        """Read the secret. If AWS does not answer, the last keys are used."""
        try:
            answer = await in_thread(self._client.get_secret_value, SecretId=self._secret)
            self._keys = read_keys(answer["SecretString"])
        except (BotoCoreError, ClientError, ValueError) as error:
            log("door_keys_unread", reason=str(error))
        self._looked_at = asyncio.get_running_loop().time()
        self._due_at = self._looked_at + (LOOK_SECONDS if self._keys else _AGAIN_SECONDS)
