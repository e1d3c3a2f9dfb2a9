"""Watches the front door's configuration, checks it, and writes Envoy's part to the files that Envoy watches.

A configuration that cannot be used changes nothing: the last good one stays.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final
from zoneinfo import ZoneInfo

from botocore.exceptions import BotoCoreError, ClientError

from inference_contracts import door_object
from inference_contracts.door_configuration import DoorConfiguration

_POLL_SECONDS: Final = 1.0
_S3: Final = "s3://"


class BadConfigurationError(Exception):
    """The configuration cannot be used. The message says why."""


class WatchedConfiguration:
    """The configuration of one replica.

    place: Path of a file, or ``s3://bucket/key``.
    folder: Folder of Envoy's files.
    s3: Client of S3. None for a file.
    """

    def __init__(self, place: str, folder: Path, s3: Any | None) -> None:
        self._place, self._folder, self._s3 = place, folder, s3
        self._seen = ""

    async def run(self, take: Callable[[DoorConfiguration], None], refuse: Callable[[], None]) -> None:
        """Give each new configuration to a function, until it is cancelled.

        refuse: Called for a configuration that cannot be used.
        """
        while True:
            await asyncio.sleep(_POLL_SECONDS)
            try:
                if (found := await asyncio.to_thread(self.read)) is not None:
                    take(found)
            except (BadConfigurationError, BotoCoreError, ClientError, OSError) as error:
                refuse()
                event = {"event": "configuration refused", "place": self._place, "reason": str(error)}
                print(json.dumps(event), file=sys.stderr, flush=True)

    def read(self) -> DoorConfiguration | None:
        """Read the configuration, and write Envoy's files. Return None if it is the one that was seen last.

        Raises BadConfigurationError if it cannot be used, and OSError or errors of botocore if it cannot be
        read. The last files of Envoy stay.
        """
        content = self._content()
        version = hashlib.sha256(content).hexdigest()
        if version == self._seen:
            return None
        self._seen = version  # a bad one is reported once
        configuration, files = checked(content)
        for name, text in files.items():
            new = self._folder / f"{name}.new"
            new.write_text(text)
            new.rename(self._folder / name)
        return configuration

    def _content(self) -> bytes:
        if not self._place.startswith(_S3):
            return Path(self._place).read_bytes()
        assert self._s3  # noqa: S101 -- for the type checker
        bucket, _, key = self._place.removeprefix(_S3).partition("/")
        content: bytes = self._s3.get_object(Bucket=bucket, Key=key)["Body"].read()
        return content


def checked(content: bytes) -> tuple[DoorConfiguration, dict[str, str]]:
    """Return the policy's part, and Envoy's files by name. Raises BadConfigurationError."""
    try:
        document = json.loads(content)
        configuration = DoorConfiguration.from_values(document[door_object.POLICY])
        envoy = document[door_object.ENVOY]
        files = {file: json.dumps(envoy[part]) for part, file in door_object.FILES.items()}
        ZoneInfo(configuration.time_zone)
    except (ValueError, TypeError, KeyError, OSError) as error:
        raise BadConfigurationError(f"{type(error).__name__}: {error}") from error
    names = [name for model in configuration.models for name in (model.name, *model.aliases)]
    twice = sorted({name for name in names if names.count(name) > 1})
    empty = [model.name for model in configuration.models if not model.targets]
    faults = [
        *([f"names of several models: {', '.join(twice)}"] if twice else []),
        *([f"models without targets: {', '.join(empty)}"] if empty else []),
    ]
    if faults:
        raise BadConfigurationError("; ".join(faults))
    return configuration, files
