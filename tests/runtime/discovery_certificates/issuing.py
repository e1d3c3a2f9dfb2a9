"""Runs the script that makes certificates, with a stand-in for the AWS CLI that keeps secrets in files."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from inference_blueprints.resources import root
from inference_contracts.discovery_store import MEMBER_COMMON_NAME

#: Knows the calls of the script, with the options and the error that the AWS CLI Command Reference describes.
AWS = r"""#!/usr/bin/env python3
import json, os, pathlib, sys
service, call, *options = sys.argv[1:]
values = dict(zip(options[::2], options[1::2]))
folder = pathlib.Path(os.environ["SECRETS"])
if os.environ.get("DENIED") in ("yes", call):
    sys.exit("An error occurred (AccessDeniedException) when calling the operation")
if service == "ecs":
    request = json.loads(values["--cli-input-json"])
    state = json.loads((folder / "services.json").read_text()) if (folder / "services.json").exists() else {}
    if call == "list-services":
        answer = {"serviceArns": [f"arn:service/{name}" for name in state]}
    elif call == "describe-services":
        [name] = [each.rpartition("/")[2] for each in request["services"]]
        found = {"status": "PRIMARY", "rolloutState": "COMPLETED", "createdAt": state[name]["created"]}
        answer = {"services": [
            {"serviceName": name, "status": "ACTIVE", "taskDefinition": name, "deployments": [found]}
        ]}
    elif call == "describe-task-definition":
        read = [{"name": "X", "valueFrom": each} for each in state[request["taskDefinition"]]["reads"]]
        parts = [{"name": "plain"}, {"name": "main", "secrets": read}]
        answer = {"taskDefinition": {"containerDefinitions": parts}}
    elif call == "update-service":
        assert request["forceNewDeployment"] is True
        state[request["service"]]["created"] = "2999-01-01 00:00:00+00:00"
        (folder / "services.json").write_text(json.dumps(state))
        answer = {}
    print(json.dumps(answer))
    sys.exit()
file = folder / values["--secret-id"]
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
    denied: str = "",
) -> subprocess.CompletedProcess[str]:
    """Run the script; the secrets are files of `folder`.

    denied: ``yes`` if AWS refuses every call, or the call that it refuses.
    """
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
            "DENIED": denied,
            "CLUSTER": "try",
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
