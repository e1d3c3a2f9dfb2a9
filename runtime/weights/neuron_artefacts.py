"""Keeps what the Neuron compiler made in S3: `python3 -m weights.neuron_artefacts load`, and `keep`.

For any image that has boto3. `load` runs before a worker. It ends when the worker can start: with the
artefacts in its folder, or as the one worker that compiles them. `keep` runs beside a worker. It renews the
claim of a worker that compiles, and stores what that worker compiled when its server is healthy.

Below the key there are one claim, one marker, and the files of each attempt. S3 writes the claim and the
marker only if they do not exist (Amazon S3 User Guide, "How to prevent object overwrites with conditional
writes"), so exactly one attempt counts, also if two workers compile. The marker is written last: what it
names is complete. A claim that nobody renews is replaced after some minutes, so a worker that was lost holds
nobody up for longer. A compilation that hangs is not renewed for ever.

============================== ============================================================
Variable                       Meaning
============================== ============================================================
``ARTEFACTS_BUCKET``           bucket
``ARTEFACTS_KEY``              prefix of these artefacts, without a slash at its end
``ARTEFACTS_FOLDER``           folder of the worker's compiler
``ARTEFACTS_CLAIM_SECONDS``    time without renewal after which a claim is replaced
``ARTEFACTS_COMPILE_SECONDS``  time for which a worker renews its claim
``ARTEFACTS_HEALTH_URL``       address that answers 200 once the worker has compiled
============================== ============================================================
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import boto3
from boto3.exceptions import Boto3Error
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from weights.attempts import Attempts

_RETRIES = Config(retries={"mode": "adaptive", "max_attempts": 10})
_PERIOD_SECONDS = 10.0
#: Renewals per time after which a claim is replaced.
_RENEWALS = 10
_NAMES = ("BUCKET", "KEY", "FOLDER", "CLAIM_SECONDS", "COMPILE_SECONDS", "HEALTH_URL")
#: Answers of S3 to a conditional write that lost (API Reference, PutObject). The last: the object is gone.
_LOST = ("PreconditionFailed", "ConditionalRequestConflict", "NoSuchKey")
#: File in the folder with the name of this worker's attempt, if it compiles. It is no artefact.
_ATTEMPT = ".attempt"


@dataclass(frozen=True)
class ArtefactSettings:
    """The variables."""

    bucket: str
    key: str
    folder: Path
    claim_seconds: float
    compile_seconds: float
    health_url: str


def read_artefact_settings(environment: Mapping[str, str]) -> ArtefactSettings:
    """Read the variables.

    Raises
    ------
    ValueError
        If variables are missing, with the names of all.
    """
    values = {name: environment.get(f"ARTEFACTS_{name}", "") for name in _NAMES}
    missing = [f"ARTEFACTS_{name}" for name, value in values.items() if not value]
    if missing:
        raise ValueError(f"set {', '.join(missing)}")
    return ArtefactSettings(
        bucket=values["BUCKET"],
        key=values["KEY"].rstrip("/"),
        folder=Path(values["FOLDER"]),
        claim_seconds=float(values["CLAIM_SECONDS"]),
        compile_seconds=float(values["COMPILE_SECONDS"]),
        health_url=values["HEALTH_URL"],
    )


class KeptArtefacts:
    """The artefacts below one key."""

    def __init__(self, settings: ArtefactSettings) -> None:
        self._settings = settings
        self._client: Any = boto3.client("s3", config=_RETRIES)

    @property
    def _marker(self) -> str:
        return f"{self._settings.key}/complete.json"

    @property
    def _claim(self) -> str:
        return f"{self._settings.key}/claim"

    def complete_attempt(self) -> dict[str, Any] | None:
        """Return what the marker says: the attempt and its files. None if there is no marker."""
        if not self._exists(self._marker):
            return None
        answer = self._client.get_object(Bucket=self._settings.bucket, Key=self._marker)
        content: dict[str, Any] = json.loads(answer["Body"].read())
        return content

    def claim(self, attempt: str) -> bool:
        """Return whether this worker is the one that compiles: it has the claim, or replaced an old one."""
        if self._put(self._claim, attempt.encode(), IfNoneMatch="*"):
            return True
        found = self._listed(self._claim)
        if found is None:
            return False
        age = (datetime.now(UTC) - found["LastModified"]).total_seconds()
        # Of several workers that see the old claim, one replaces it: the others' condition fails.
        return age > self._settings.claim_seconds and self._put(
            self._claim, attempt.encode(), IfMatch=found["ETag"]
        )

    def renew(self, attempt: str) -> None:
        """Make the claim young again, if it is still that of this worker."""
        if not self._exists(self._claim):
            return
        found = self._client.get_object(Bucket=self._settings.bucket, Key=self._claim)
        if found["Body"].read().decode() == attempt:
            self._put(self._claim, attempt.encode(), IfMatch=found["ETag"])

    def load(self, marker: Mapping[str, Any]) -> None:
        """Write the files of an attempt into the folder.

        Raises
        ------
        ValueError
            If a file has another size than the marker says.
        """
        for name, size in marker["files"].items():
            target = self._settings.folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            self._client.download_file(
                self._settings.bucket, f"{self._settings.key}/{marker['attempt']}/{name}", str(target)
            )
            if target.stat().st_size != size:
                raise ValueError(f"{name}: got {target.stat().st_size} bytes, the marker says {size}")

    def store(self, attempt: str) -> bool:
        """Store the folder and write the marker. Return whether this attempt is the one that counts."""
        folder = self._settings.folder
        files = {
            file.relative_to(folder).as_posix(): file.stat().st_size
            for file in sorted(folder.rglob("*"))
            if file.is_file() and file.name != _ATTEMPT
        }
        for name in files:
            key = f"{self._settings.key}/{attempt}/{name}"
            self._client.upload_file(str(folder / name), self._settings.bucket, key)
        content = json.dumps({"attempt": attempt, "files": files}, indent=1).encode()
        return self._put(self._marker, content, IfNoneMatch="*")

    def _put(self, key: str, content: bytes, **condition: str) -> bool:
        """Write an object under a condition. Return whether it was written."""
        try:
            self._client.put_object(Bucket=self._settings.bucket, Key=key, Body=content, **condition)
        except ClientError as error:
            if error.response["Error"]["Code"] in _LOST:
                return False
            raise
        return True

    def _exists(self, key: str) -> bool:
        return self._listed(key) is not None

    def _listed(self, key: str) -> dict[str, Any] | None:
        """Return an object's entry. S3 refuses HeadObject of a missing object to a role of one prefix."""
        found = self._client.list_objects_v2(Bucket=self._settings.bucket, Prefix=key, MaxKeys=1)
        entries: list[dict[str, Any]] = [each for each in found.get("Contents", []) if each["Key"] == key]
        return entries[0] if entries else None


def load(settings: ArtefactSettings, *, period_seconds: float = _PERIOD_SECONDS) -> None:
    """Fill the folder, or take the claim; wait while another worker compiles.

    What the folder has from an earlier worker is removed first. If that one was killed while it compiled, the
    compiler would take the half for the whole.

    Parameters
    ----------
    period_seconds
        Time between two looks.
    """
    kept, attempt, attempts = KeptArtefacts(settings), uuid.uuid4().hex, Attempts()
    _empty(settings.folder)
    place = f"s3://{settings.bucket}/{settings.key}/"
    while True:
        try:
            marker = kept.complete_attempt()
            if marker:
                kept.load(marker)
                print(f"loaded {len(marker['files'])} compiled files from {place}", flush=True)
                return
        except (
            Boto3Error,
            BotoCoreError,
        ) as error:  # such as a body that is cut short; boto3 repeats requests
            print(f"trying again: {error}", file=sys.stderr, flush=True)
            if not attempts.again():
                raise
            continue
        if kept.claim(attempt):
            settings.folder.mkdir(parents=True, exist_ok=True)
            (settings.folder / _ATTEMPT).write_text(attempt, encoding="utf-8")
            print(f"nothing is compiled below {place}: this worker compiles", flush=True)
            return
        print(f"waiting for {place}complete.json: another worker compiles", flush=True)
        time.sleep(period_seconds)


def keep(settings: ArtefactSettings, *, period_seconds: float = _PERIOD_SECONDS) -> bool | None:
    """Renew this worker's claim, and store what it compiled once its server is healthy.

    S3 may refuse or be out of reach for longer than its client tries. Then the next look tries again:
    nothing restarts this container on ECS.

    Parameters
    ----------
    period_seconds
        Time between two looks.

    Returns
    -------
    bool or None
        Whether this attempt counts. None if this worker compiled nothing.
    """
    mark = settings.folder / _ATTEMPT
    if not mark.exists():
        print("this worker loaded its artefacts: nothing to store", flush=True)
        return None
    attempt, claimed = mark.read_text(encoding="utf-8"), mark.stat().st_mtime
    kept, renewed = KeptArtefacts(settings), 0.0
    while True:
        try:
            if _is_healthy(settings.health_url):
                counts = kept.store(attempt)
                break
            now = time.time()
            is_due = now - renewed >= settings.claim_seconds / _RENEWALS
            if is_due and now - claimed < settings.compile_seconds:
                kept.renew(attempt)
                renewed = now
        except (Boto3Error, BotoCoreError, ClientError) as error:
            print(f"trying again in {period_seconds:g} s: {error}", file=sys.stderr, flush=True)
        time.sleep(period_seconds)
    print("stored" if counts else "another worker stored its artefacts first", flush=True)
    mark.unlink()
    return counts


def _empty(folder: Path) -> None:
    """Remove what is in a folder. The folder itself may be a mount, which stays."""
    for entry in folder.iterdir() if folder.is_dir() else ():
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()


def _is_healthy(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:  # noqa: S310 -- the worker's own address
            return bool(answer.status == 200)  # noqa: PLR2004
    except (urllib.error.URLError, OSError):
        return False


def main(words: list[str], environment: Mapping[str, str]) -> int:
    """Run `load`, or `keep` and then stay: the container beside a worker lives as long as the worker."""
    if words not in (["load"], ["keep"]):
        print(f"error: got {words}, allowed are load and keep", file=sys.stderr)
        return 2
    try:
        settings = read_artefact_settings(environment)
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    if words == ["load"]:
        load(settings)
        return 0
    keep(settings)
    while True:
        time.sleep(3600)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], os.environ))
