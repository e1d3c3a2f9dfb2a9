"""Runs the script that makes certificates, with a stand-in for the AWS CLI that keeps secrets in files."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from inference_blueprints.resources import root
from inference_contracts.discovery_store import MEMBER_COMMON_NAME

#: Knows two calls, with the options and the error that the AWS CLI Command Reference describes.
AWS = r"""#!/usr/bin/env python3
import os, pathlib, sys
service, call, *options = sys.argv[1:]
values = dict(zip(options[::2], options[1::2]))
file = pathlib.Path(os.environ["SECRETS"], values["--secret-id"])
if os.environ.get("DENIED"):
    sys.exit("An error occurred (AccessDeniedException) when calling the operation")
if call == "get-secret-value":
    assert values["--query"] == "SecretString" and values["--output"] == "text"
    if not file.exists():
        sys.exit("An error occurred (ResourceNotFoundException) when calling the GetSecretValue operation")
    print(file.read_text())
elif call == "put-secret-value":
    source = values["--secret-string"]
    assert source.startswith("file://")
    file.write_text(pathlib.Path(source.removeprefix("file://")).read_text())
else:
    sys.exit(f"unknown call {call}")
"""

#: Common name of a client's certificate.
CLIENT = "r0123456789ab"


def issue(
    folder: Path,
    hosts: Sequence[str],
    *,
    clients: Sequence[str] = (CLIENT,),
    days: int = 700,
    left_days: int = 180,
    denied: bool = False,
) -> subprocess.CompletedProcess[str]:
    """Run the script; the secrets are files of `folder`."""
    programs = folder / "bin"
    programs.mkdir(exist_ok=True, parents=True)
    (programs / "aws").write_text(AWS)
    (programs / "aws").chmod(0o755)
    return subprocess.run(
        ["bash", root() / "runtime/discovery_certificates/issue.sh"],
        env={
            "PATH": f"{programs}:{os.environ['PATH']}",
            "TMPDIR": str(folder),
            "SECRETS": str(folder),
            **({"DENIED": "yes"} if denied else {}),
            "AUTHORITY": "authority",
            "MEMBERS": "members",
            "CLIENTS": "clients",
            "ADMINISTRATOR": "administrator",
            "HOSTS": ",".join(hosts),
            "MEMBER_NAME": MEMBER_COMMON_NAME,
            "CLIENT_NAMES": ",".join(clients),
            "AUTHORITY_DAYS": "3650",
            "DAYS": str(days),
            "LEFT_DAYS": str(left_days),
        },
        capture_output=True,
        text=True,
        check=False,
    )


def secret(folder: Path, name: str) -> dict[str, str]:
    """Return the values of a secret."""
    values: dict[str, str] = json.loads((folder / name).read_text())
    return values
