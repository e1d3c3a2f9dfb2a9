"""AWS emulated in the process, and a platform with a capacity shift on it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from moto import mock_aws

from tests.runtime.capacity_shift.shift_platform import ShiftPlatform, new_platform, shift_configuration
from tests.runtime.operations.fresh_process import NOBODY, begin_anew


@pytest.fixture
def aws_in_process(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    begin_anew(monkeypatch, NOBODY)
    with mock_aws():
        yield


@pytest.fixture
def shifting(aws_in_process: None) -> ShiftPlatform:
    return new_platform(shift_configuration())
