"""Credentials of the task's role (Amazon ECS Developer Guide, "Task IAM role")."""

from __future__ import annotations

import json
import os
import urllib.request
from collections.abc import Mapping
from pathlib import Path

from weights.s3_reader import Credentials

#: Host of the relative address.
_AGENT = "http://169.254.170.2"
_TIMEOUT_SECONDS = 5


def with_task_credentials(environment: Mapping[str, str]) -> dict[str, str]:
    """Return an environment that names the agent's address in full.

    ECS sets ``AWS_CONTAINER_CREDENTIALS_RELATIVE_URI``, EKS Pod Identity a full address and a file with a
    token, which `weights.s3_reader` reads. ECS needs no token, so the file is an empty one.
    """
    relative = environment.get("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI")
    if not relative or "AWS_CONTAINER_CREDENTIALS_FULL_URI" in environment:
        return dict(environment)
    return {
        **environment,
        "AWS_CONTAINER_CREDENTIALS_FULL_URI": _AGENT + relative,
        "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": os.devnull,
    }


def read_credentials(environment: Mapping[str, str]) -> Credentials:
    """Return the credentials that the agent offers, or else those of the environment.

    Raises OSError, ValueError or KeyError if the agent does not answer with credentials, and the environment
    has none.
    """
    known = with_task_credentials(environment)
    address = known.get("AWS_CONTAINER_CREDENTIALS_FULL_URI")
    if address is None:
        return Credentials(
            known["AWS_ACCESS_KEY_ID"], known["AWS_SECRET_ACCESS_KEY"], known.get("AWS_SESSION_TOKEN")
        )
    token = Path(known.get("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", os.devnull)).read_text(encoding="utf-8")
    request = urllib.request.Request(address, headers={"Authorization": token.strip()})  # noqa: S310 - agent
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=_TIMEOUT_SECONDS) as answer:
        found = json.loads(answer.read())
    return Credentials(found["AccessKeyId"], found["SecretAccessKey"], found["Token"])
