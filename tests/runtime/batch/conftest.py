"""AWS emulated within the process, for functions that need no server."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.client import BaseClient
from moto import mock_aws

from batch.jobs.settings import BatchPlatform, read_platform
from tests.runtime.batch import resources


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[dict[str, str]]:
    """Table, bucket and state machine as the stack makes them; the functions' environment."""
    for name, value in {
        "AWS_ACCESS_KEY_ID": "none",
        "AWS_SECRET_ACCESS_KEY": "none",
        "AWS_DEFAULT_REGION": resources.REGION,
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)
    monkeypatch.setattr(BaseClient, "_make_api_call", _one_at_a_time(BaseClient._make_api_call))
    with mock_aws():
        environment = resources.create(tmp_path)
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        yield environment


def _one_at_a_time(call: Callable[..., Any]) -> Callable[..., Any]:
    """Let one call in after the other: a condition and its write are one in AWS, and two in the emulation."""
    lock = threading.RLock()

    def locked(*arguments: Any, **values: Any) -> Any:
        with lock:
            return call(*arguments, **values)

    return locked


@pytest.fixture
def platform_in_process(aws: dict[str, str]) -> BatchPlatform:
    return read_platform(aws)
