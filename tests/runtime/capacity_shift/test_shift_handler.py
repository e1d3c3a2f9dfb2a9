"""The handler with the real decision, when neither CloudWatch nor the API server answers."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest
from aws_lambda_powertools import Metrics
from capacity_shift import handlers

from inference_contracts import operations_names, shift_names
from operations.operations_errors import OperationsSettingsError
from tests.runtime.capacity_shift.shift_platform import (
    FREEZE,
    NOW,
    PLATFORM,
    ShiftPlatform,
    shift_configuration,
)
from tests.runtime.conftest import Pauses

_NOBODY = "http://127.0.0.1:1"


@pytest.fixture
def configured(shifting: ShiftPlatform, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ShiftPlatform:
    (tmp_path / "shift.json").write_text(shift_configuration().as_json())
    for name, value in {
        operations_names.PLATFORM: PLATFORM,
        operations_names.CELL: operations_names.MAIN_CELL,
        operations_names.TABLE: "operations",
        operations_names.FREEZE_PARAMETER: FREEZE,
        operations_names.TOPIC_ARN: "arn:aws:sns:us-west-2:111122223333:people",
        operations_names.CLUSTER: PLATFORM,
        operations_names.CLUSTER_ENDPOINT: _NOBODY,
        operations_names.CLUSTER_AUTHORITY: base64.b64encode(b"none").decode(),
        operations_names.METRICS_ENDPOINT: _NOBODY,
        shift_names.SHIFT_CONFIGURATION: str(tmp_path / "shift.json"),
        shift_names.SHIFT_BATCH_TABLE: "records",
    }.items():
        monkeypatch.setenv(name, value)
    begin_anew()
    # All controllers of one process share their figures, and tests of another one may leave some.
    Metrics(namespace=operations_names.METRIC_NAMESPACE).clear_metrics()
    return shifting


def begin_anew() -> None:
    for cached in (handlers._cell, handlers._run):
        cached.cache_clear()


def test_on_ecs_the_same_handler_reads_services_and_needs_no_api_server(
    configured: ShiftPlatform,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    pauses: Pauses,
) -> None:
    for name in (
        operations_names.CLUSTER,
        operations_names.CLUSTER_ENDPOINT,
        operations_names.CLUSTER_AUTHORITY,
    ):
        monkeypatch.delenv(name)
    begin_anew()
    with pytest.raises(OperationsSettingsError, match="OPERATIONS_CLUSTER, OPERATIONS_CLUSTER_ENDPOINT"):
        handlers.shift({}, None)
    monkeypatch.setenv(operations_names.ECS_CLUSTER, PLATFORM)
    begin_anew()
    handlers.shift({}, None)
    assert '"Runs":[1.0]' in capsys.readouterr().out.replace(" ", "")
    (stored,) = configured.table.list("audit#", NOW)
    assert f"the service {configured.workers.name} of the cluster {PLATFORM}" in json.dumps(
        stored.content["unread"]
    )


def test_a_run_ends_and_says_so_although_nobody_answers(
    configured: ShiftPlatform, capsys: pytest.CaptureFixture[str], pauses: Pauses
) -> None:
    handlers.shift({}, None)
    assert pauses.seconds, "it asked again"
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines() if "_aws" in line]
    (figures,) = lines
    assert figures[operations_names.RUNS] == [1.0]
    assert figures[operations_names.METRICS_UNREADABLE] == [1.0]
    assert {figures[name] for name in operations_names.METRIC_DIMENSIONS} == {
        PLATFORM,
        operations_names.MAIN_CELL,
        operations_names.SHIFT_SERVICE,
    }
    ceiling = configured.ceiling()
    assert ceiling is not None
    assert ceiling["places"] == 0
    assert configured.api.patches == []
    (stored,) = configured.table.list("audit#", NOW)
    assert "did not answer" in json.dumps(stored.content["unread"])
