"""Fixtures of tests that end workers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.engines.worker_control import WorkerControl


@pytest.fixture
def control(engines: WorkerControl) -> Iterator[WorkerControl]:
    """Return the control of a module's engines, and replace the workers that a test has ended."""
    yield engines
    engines.restore()
