"""What the ECS agent knows about the task: its address and its ARN.

Sources: Amazon ECS Developer Guide, "Amazon ECS task metadata endpoint version 4": ``${...}`` answers about
the container with ``Networks[].IPv4Addresses``, ``${...}/task`` about the task with ``TaskARN``.
"""

from __future__ import annotations

import json
import socket
import urllib.request
from collections.abc import Mapping
from typing import Any

from task_start.start_document import TaskStartError

_VARIABLE = "ECS_CONTAINER_METADATA_URI_V4"
_TIMEOUT_SECONDS = 5
#: The VPC's resolver (Amazon VPC User Guide, "DNS attributes for your VPC"). Nothing is sent to it here.
_RESOLVER = ("169.254.169.253", 53)


def task_address(network: str, environment: Mapping[str, str]) -> str:
    """Return the IPv4 address at which other tasks reach this one.

    The agent knows it of a task with a network interface of its own. A task on its host's network has the
    address from which the host reaches its VPC.

    network: Network mode of the task.
    Raises TaskStartError if the address cannot be found.
    """
    if _VARIABLE in environment:
        networks = _ask(environment[_VARIABLE]).get("Networks") or []
        known = [address for each in networks for address in each.get("IPv4Addresses") or [] if address]
        if known:
            return str(known[0])
    if network != "host":
        raise TaskStartError(f"the ECS agent names no IPv4 address of the task ({_VARIABLE})")
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect(_RESOLVER)
            return str(probe.getsockname()[0])
    except OSError as error:
        raise TaskStartError(f"the host has no route to its VPC: {error}") from error


def task_arn(environment: Mapping[str, str]) -> str:
    """Return the task's ARN. Raises TaskStartError if the ECS agent does not answer."""
    if _VARIABLE not in environment:
        raise TaskStartError(f"{_VARIABLE} is not set: the program does not run in a task of ECS")
    return str(_ask(f"{environment[_VARIABLE]}/task")["TaskARN"])


def _ask(address: str) -> Any:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(address, timeout=_TIMEOUT_SECONDS) as answer:
            return json.loads(answer.read())
    except (OSError, ValueError) as error:
        raise TaskStartError(f"the ECS agent does not answer at {address}: {error}") from error
