"""A cell of eight nodes, with AWS emulated in the process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import boto3
import pytest
from moto import mock_aws

from operations import aws_clients
from tests.runtime.gpu_health.fake_cluster import FakeCluster
from tests.runtime.gpu_health.world import NOW, REGION, HealthWorld, populate, prepared


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[HealthWorld]:
    """A cell with eight nodes, whose workers reported for ten minutes."""
    for name, value in {
        "AWS_ACCESS_KEY_ID": "none",
        "AWS_SECRET_ACCESS_KEY": "none",
        "AWS_DEFAULT_REGION": REGION,
        "POWERTOOLS_METRICS_DISABLED": "true",
        "POWERTOOLS_LOG_LEVEL": "CRITICAL",
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)
    aws_clients.client.cache_clear()
    aws_clients.resource.cache_clear()
    with mock_aws(), FakeCluster() as cluster, prepared(cluster, monkeypatch, tmp_path) as made:
        populate(cluster, NOW)
        yield made
