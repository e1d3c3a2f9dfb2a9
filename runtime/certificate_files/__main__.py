"""Writes the files of a certificate, and writes them again when its secret changes.

``python -m certificate_files``, with the variables that `door_identities` names. Amazon ECS gives a container
its secrets only when it starts (Amazon ECS Developer Guide, "Pass Secrets Manager secrets through Amazon ECS
environment variables"), so a program reads them. It runs in the same way on EKS.

Files change all at once: a new folder, then a link that is renamed over the old one. Envoy watches for the
rename. A secret that cannot be read changes nothing.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from inference_contracts.door_identities import (
    FILES,
    FOLDER_VARIABLE,
    LOOK_SECONDS,
    READY_LINK,
    SECONDS_VARIABLE,
    SECRET_VARIABLE,
)

#: Time until the next look if there is nothing to show yet.
_FIRST_SECONDS: Final = 5.0


class UnreadableError(Exception):
    """The secret cannot be read, or has no certificate yet."""


class CertificateFolder:
    """The folder with the files."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._shown: Mapping[str, str] | None = None
        self._number = 0

    @property
    def is_ready(self) -> bool:
        """Whether the files are there."""
        return self._shown is not None

    def show(self, values: Mapping[str, str]) -> bool:
        """Write the files of a secret, unless they are what the folder has. Return whether they were new.

        Raises UnreadableError if a value is missing.
        """
        missing = sorted(FILES.keys() - values.keys())
        if missing:
            raise UnreadableError(f"the secret has no {', '.join(missing)} yet")
        if values == self._shown:
            return False
        self._number += 1
        # A container that starts again finds the folders of its predecessor.
        data = self._folder / f"..{os.getpid()}-{self._number}"
        shutil.rmtree(data, ignore_errors=True)
        data.mkdir(parents=True)
        for key, name in FILES.items():
            (data / name).write_text(values[key], encoding="utf-8")
            link = self._folder / name
            if not link.is_symlink():
                link.symlink_to(Path(READY_LINK) / name)
        link, new = self._folder / READY_LINK, self._folder / "..new"
        old = link.resolve() if link.is_symlink() else None
        new.unlink(missing_ok=True)
        new.symlink_to(data.name)
        new.replace(link)
        if old and old != data.resolve():
            shutil.rmtree(old, ignore_errors=True)
        self._shown = dict(values)
        return True


def keep(
    folder: CertificateFolder,
    read: Callable[[], Mapping[str, str]],
    wait: Callable[[float], bool],
    seconds: float,
) -> None:
    """Show the secret's files until the end.

    read: Returns the values of the secret, or raises UnreadableError.
    wait: Waits for some seconds, and returns whether it is the end.
    seconds: Time between two looks.
    """
    while True:
        try:
            if folder.show(read()):
                print(json.dumps({"event": "certificate written"}), flush=True)
        except (UnreadableError, OSError) as error:
            # Whoever uses the files goes on with those that are there, so this program does, too.
            print(json.dumps({"event": "certificate not read", "why": str(error)}), flush=True)
        if wait(seconds if folder.is_ready else _FIRST_SECONDS):
            return


def secret_reader(arn: str) -> Callable[[], Mapping[str, str]]:
    """Return a function that reads the values of a secret. Its ARN names the region."""
    settings = Config(retries={"mode": "standard", "max_attempts": 5}, connect_timeout=5, read_timeout=10)
    client = boto3.client("secretsmanager", region_name=arn.split(":")[3], config=settings)

    def read() -> Mapping[str, str]:
        try:
            values = json.loads(client.get_secret_value(SecretId=arn)["SecretString"])
        except (BotoCoreError, ClientError) as error:
            raise UnreadableError(str(error)) from error
        except ValueError as error:
            raise UnreadableError("the secret has no certificate yet") from error
        return values if isinstance(values, dict) else {}

    return read


def main(environment: Mapping[str, str]) -> int:
    """Run until a signal ends it, and return an exit code.

    environment: The variables.
    """
    missing = [name for name in (SECRET_VARIABLE, FOLDER_VARIABLE) if not environment.get(name)]
    if missing:
        print(f"error: the variables {', '.join(missing)} are missing", file=sys.stderr)
        return 2
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    keep(
        CertificateFolder(Path(environment[FOLDER_VARIABLE])),
        secret_reader(environment[SECRET_VARIABLE]),
        ended.wait,
        float(environment.get(SECONDS_VARIABLE, LOOK_SECONDS)),
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(os.environ))
