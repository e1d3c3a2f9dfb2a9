"""Issues certificates as the build does, into files in the place of secrets."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, cast

from inference_blueprints.resources import root
from inference_contracts.door_identities import FILES, SERVER_NAME, Caller, caller_uri, server_uri
from tests.runtime.discovery_certificates.issuing import AWS

PLATFORM = "try"
RELEASE = "model-main"


def server(release: str = RELEASE, platform: str = PLATFORM) -> dict[str, Any]:
    """Return what the certificate of an entry point certifies. Its secret is called like the release."""
    return {
        "secret": release,
        "uri": server_uri(platform, release),
        "names": [release, SERVER_NAME],
        "usage": "server",
    }


def client(caller: Caller | Literal["stranger"], platform: str = PLATFORM) -> dict[str, Any]:
    """Return what the certificate of a caller certifies. Its secret is called like the caller."""
    return {
        "secret": caller,
        "uri": caller_uri(platform, cast(Caller, caller)),
        "names": [],
        "usage": "client",
    }


def issue(
    folder: Path, identities: Sequence[Mapping[str, Any]], **changes: str
) -> subprocess.CompletedProcess[str]:
    """Run the program of the build. The secrets are files of `folder`.

    changes: Other values of variables.
    """
    programs = folder / "bin"
    programs.mkdir(exist_ok=True, parents=True)
    (programs / "aws").write_text(AWS)
    (programs / "aws").chmod(0o755)
    return subprocess.run(
        [sys.executable, root() / "runtime/door_certificates/issue.py"],
        env={
            "PATH": f"{programs}:{os.environ['PATH']}",
            "TMPDIR": str(folder),
            "SECRETS": str(folder),
            "PLATFORM": PLATFORM,
            "AUTHORITY": "authority",
            "AUTHORITY_DAYS": "3650",
            "AUTHORITY_LEFT_DAYS": "365",
            "IDENTITIES": json.dumps(list(identities)),
            "DAYS": "14",
            "LEFT_DAYS": "7",
            **changes,
        },
        capture_output=True,
        text=True,
        check=False,
    )


def secret(folder: Path, name: str) -> dict[str, str]:
    """Return the values of a secret."""
    values: dict[str, str] = json.loads((folder / name).read_text())
    return values


def mount(values: Mapping[str, str], folder: Path, version: str = "1") -> Path:
    """Write the files of a secret into a folder, all at once, as the driver of the Secrets Store does.

    It writes a new folder and renames a link to it (``pkg/util/fileutil/atomic_writer.go`` of
    kubernetes-sigs/secrets-store-csi-driver).
    """
    data = folder / f"..{version}"
    data.mkdir(parents=True)
    for key, name in FILES.items():
        (data / name).write_text(values[key], encoding="utf-8")
        if not (folder / name).is_symlink():
            (folder / name).symlink_to(Path("..data") / name)
    link = folder / "..data_tmp"
    link.symlink_to(data.name)
    link.rename(folder / "..data")
    return folder
