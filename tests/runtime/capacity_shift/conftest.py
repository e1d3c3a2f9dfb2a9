"""AWS emulated in the process, and a platform with a capacity shift on it."""

from __future__ import annotations

from collections.abc import Iterator

import boto3
import pytest
from moto import mock_aws

from tests.runtime.capacity_shift.shift_platform import ShiftPlatform, new_platform, shift_configuration


@pytest.fixture
def aws_in_process(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name, value in {
        "AWS_ACCESS_KEY_ID": "none",
        "AWS_SECRET_ACCESS_KEY": "none",
        "AWS_DEFAULT_REGION": "us-west-2",
        "POWERTOOLS_SERVICE_NAME": "capacity-shift",
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)
    with mock_aws():
        yield


@pytest.fixture
def shifting(aws_in_process: None) -> ShiftPlatform:
    return new_platform(shift_configuration())
