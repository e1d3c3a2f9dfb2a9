"""The workers of an elastic role: the smallest number runs at first, each in a process of its own."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from benchmarks.harness.scaled_platform import serving
from inference_blueprints.loading import load_blueprint
from inference_local.scaling.operator_stand_in import ElasticRole, OperatorStandIn
from inference_local.serving.readiness import wait_until_ready

pytestmark = pytest.mark.faults
_PATIENCE_SECONDS = 120.0


def test_the_smallest_number_runs_at_first_and_more_register_when_they_start(tmp_path: Path) -> None:
    blueprint = load_blueprint("elastic-g6e").blueprint
    with serving(blueprint, tmp_path, finish_seconds=1) as running:
        (deployment,) = running.deployments
        (workers,) = deployment.workers
        assert (workers.replicas, workers.maximum) == (2, 12)
        assert running.registered(deployment) == (2, 2)
        operator = OperatorStandIn(running.workers, ElasticRole(deployment, workers, 0.0))
        operator.step(0.0, 9)
        operator.step(0.0, 9)
        for url in running.frontend_urls(deployment):
            port = int(url.rpartition(":")[2])
            wait_until_ready(
                url,
                port,
                deployment.model.name,
                9,
                deadline=time.monotonic() + _PATIENCE_SECONDS,
                check=running.check,
            )
    assert operator.serving == 9
