"""Clients of AWS that give up soon: a run of a controller has a minute."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import boto3
from botocore.config import Config

#: At most three attempts of 2 s for the connection and 5 s for the answer, with backoff between them:
#: https://docs.aws.amazon.com/boto3/latest/guide/retries.html
_CONFIG: Final = Config(
    connect_timeout=2, read_timeout=5, retries={"mode": "standard", "total_max_attempts": 3}
)


@cache
def client(service: str) -> Any:
    """Return a client of a service, one per process."""
    return boto3.client(service, config=_CONFIG)


@cache
def resource(service: str) -> Any:
    """Return a resource of a service, one per process."""
    return boto3.resource(service, config=_CONFIG)
