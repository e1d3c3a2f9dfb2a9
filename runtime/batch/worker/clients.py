"""AWS clients for asyncio: boto3's blocking calls run in threads.

A worker makes few AWS calls (one chunk per second, one heartbeat per shard) and many requests to the
endpoint. So AWS calls use AWS's own SDK with its retries, and endpoint requests use the event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final, ParamSpec, TypeVar

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

#: Parallel calls: one poll, and for each shard a read, a commit and a heartbeat.
_THREADS: Final = 32
# Not adaptive: a throttled commit would slow down the reading of shards too. A read that hangs is given up
# soon, because it resumes at the same byte. The longest call is the queue's poll of 20 s.
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
    """One client per AWS service."""

    s3: Any
    sqs: Any
    stepfunctions: Any
    dynamodb: Any


def make_clients() -> Clients:
    """Return clients with boto3's default settings."""
    session = boto3.session.Session()
    services = ("s3", "sqs", "stepfunctions", "dynamodb")
    return Clients(*(session.client(service, config=_CONFIGURATION) for service in services))


def use_threads() -> None:
    """Give the running event loop enough threads for `in_thread`."""
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(_THREADS, "aws"))


def is_condition_refused(error: BotoCoreError | ClientError) -> bool:
    """Return whether DynamoDB refused a write because of its condition."""
    return (
        isinstance(error, ClientError)
        and error.response["Error"]["Code"] == "ConditionalCheckFailedException"
    )


async def in_thread(function: Callable[P, R], *words: P.args, **options: P.kwargs) -> R:
    """Run a blocking function in a thread.

    function: For example a method of a client.
    """
    return await asyncio.to_thread(function, *words, **options)
