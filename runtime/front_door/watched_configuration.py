"""Watches the front door's configuration, checks it, and writes Envoy's part to the files that Envoy watches.

A configuration that cannot be used changes nothing: the last good one stays, also over a restart.
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

from front_door.batch_host import BatchHost
from inference_contracts import door_object
from inference_contracts.door_configuration import DoorConfiguration

_POLL_SECONDS: Final = 1.0
_S3: Final = "s3://"
_NOT_MODIFIED: Final = 304


class BadConfigurationError(Exception):
    """The configuration cannot be used. The message says why."""


class WatchedConfiguration:
    """The configuration of one replica.

    place: Path of a file, or ``s3://bucket/key``.
    folder: Folder of Envoy's files.
    state: Folder that keeps the last good configuration.
    s3: Client of S3. None for a file.
    batch: Host name of the batch API. None if the configuration has it, or if there is none.
    """

    def __init__(
        self, place: str, folder: Path, state: Path, s3: Any | None, batch: BatchHost | None = None
    ) -> None:
        self._place, self._folder, self._s3, self._batch = place, folder, s3, batch
        self._last_good = state / "last-good-configuration.json"
        self._seen, self._etag, self._read = "", "", b""

    def first(self, refuse: Callable[[], None]) -> DoorConfiguration:
        """Return the configuration to begin with: if it cannot be used or read, the last good one.

        Raises BadConfigurationError, OSError or an error of botocore if there is no last good one.
        """
        try:
            found = self.read()
            assert found  # noqa: S101 -- the first one is always new
        except (BadConfigurationError, BotoCoreError, ClientError, OSError) as error:
            if not self._last_good.exists():
                raise
            refuse()
            self._report(error)
            found = self._take(self._last_good.read_bytes())
        return found

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
                self._report(error)

    def read(self) -> DoorConfiguration | None:
        """Read the configuration, and write Envoy's files.

        Return None if configuration and batch API are those that were seen last.

        Raises BadConfigurationError if it cannot be used, and OSError or errors of botocore if it cannot be
        read. The last files of Envoy stay.
        """
        content = self._content()
        host = self._batch.current() if self._batch else ""
        version = hashlib.sha256(host.encode() + b"\n" + content).hexdigest()
        if not content or version == self._seen:
            return None
        self._seen = version  # a bad one is reported once
        found = self._take(content)
        new = self._last_good.with_suffix(".new")
        new.write_bytes(content)
        new.rename(self._last_good)
        return found

    def _take(self, content: bytes) -> DoorConfiguration:
        """Write Envoy's files, and return the policy's part."""
        configuration, files = checked(content)
        host = self._batch.current() if self._batch else ""
        for name, text in files.items():
            new = self._folder / f"{name}.new"
            new.write_text(text.replace(door_object.BATCH_HOST, host or door_object.BATCH_HOST))
            new.rename(self._folder / name)
        return configuration

    def _report(self, error: Exception) -> None:
        event = {"event": "configuration refused", "place": self._place, "reason": str(error)}
        print(json.dumps(event), file=sys.stderr, flush=True)

    def _content(self) -> bytes:
        """Return the content. An object that has not changed is not sent again."""
        if not self._place.startswith(_S3):
            return Path(self._place).read_bytes()
        assert self._s3  # noqa: S101 -- for the type checker
        bucket, _, key = self._place.removeprefix(_S3).partition("/")
        condition = {"IfNoneMatch": self._etag} if self._etag else {}
        try:
            answer = self._s3.get_object(Bucket=bucket, Key=key, **condition)
        except ClientError as error:
            # https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetObject.html, "If-None-Match"
            if error.response["ResponseMetadata"]["HTTPStatusCode"] == _NOT_MODIFIED:
                return self._read
            raise
        self._read = answer["Body"].read()
        self._etag = answer["ETag"]
        return self._read


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
