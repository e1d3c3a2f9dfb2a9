"""A cell of eight nodes, with AWS emulated in the process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from moto import mock_aws

from tests.runtime.conftest import Pauses
from tests.runtime.gpu_health.fake_cluster import FakeCluster
from tests.runtime.gpu_health.world import NOW, QUIET, HealthWorld, populate, prepared
from tests.runtime.operations.fresh_process import NOBODY, begin_anew


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, pauses: Pauses) -> Iterator[HealthWorld]:
    """A cell with eight nodes, whose workers reported for ten minutes. Nothing is waited for."""
    begin_anew(monkeypatch, NOBODY | QUIET)
    with mock_aws(), FakeCluster() as cluster, prepared(cluster, monkeypatch, tmp_path) as made:
        populate(cluster, NOW)
        yield made
