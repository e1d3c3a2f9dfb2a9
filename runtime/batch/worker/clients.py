"""The AWS clients: boto3's, whose blocking calls run in threads.

The calls of a worker are few (a chunk a second, a heartbeat a shard), its requests to the endpoint are many;
so the former have the SDK that AWS keeps, with its retries, and the latter the event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final, ParamSpec, TypeVar

import boto3
from botocore.config import Config

#: Calls at the same time: a poll, and for each shard a read, a commit and a heartbeat.
_THREADS: Final = 32
# Not adaptive: what S3 refuses of a commit would slow down the reading of shards too. A read that hangs is
# given up soon, since it is begun again where it was; the longest call is the queue's poll of 20 s.
_CONFIGURATION: Final = Config(
    retries={"mode": "standard", "max_attempts": 10},
    connect_timeout=5,
    read_timeout=30,
    max_pool_connections=_THREADS,
)

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Clients:
    """One client a service.

    Parameters
    ----------
    s3, sqs, stepfunctions, dynamodb
        boto3 clients.
    """

    s3: Any
    sqs: Any
    stepfunctions: Any
    dynamodb: Any


def make_clients() -> Clients:
    """Return clients by boto3's own settings."""
    session = boto3.session.Session()
    services = ("s3", "sqs", "stepfunctions", "dynamodb")
    return Clients(*(session.client(service, config=_CONFIGURATION) for service in services))


def use_threads() -> None:
    """Give the running event loop threads enough for `in_thread`."""
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(_THREADS, "aws"))


async def in_thread(function: Callable[P, R], *words: P.args, **options: P.kwargs) -> R:
    """Call a function that blocks.

    Parameters
    ----------
    function
        Such as a method of a client.
    words, options
        Its arguments.
    """
    return await asyncio.to_thread(function, *words, **options)
