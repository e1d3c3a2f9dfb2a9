"""`blueprints costs` reads the tokens that batch writes, by the names under which batch writes them."""

from __future__ import annotations

import time
import uuid
from datetime import UTC, datetime, timedelta

import pytest

from batch.embedded_metrics import emit
from inference_blueprints.operate.attributed_costs import batch_tokens
from inference_blueprints.operate.aws.account import Account
from inference_contracts import batch_names
from inference_local.emulator.alarms.log_metrics import embedded_metrics
from inference_local.emulator.emulator import Emulator


def test_tokens_are_summed_by_team_and_model(
    emulator: Emulator, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in emulator.environment().items():
        monkeypatch.setenv(name, value)
    account, platform = Account("us-west-2"), f"p{uuid.uuid4().hex[:8]}"
    end = datetime.fromtimestamp(time.time() // 3600 * 3600, UTC)
    jobs = [("search", "small", 100.0, 2), ("search", "small", 50.0, 1), ("ads", "large", 7.0, 1)]
    outside = [("search", "small", 1000.0, -0.5), ("ads", "small", 1000.0, 4)]
    for team, model, tokens, hours_before in (*jobs, *outside):
        emit(
            {batch_names.OUTPUT_TOKENS: tokens},
            {
                batch_names.PLATFORM_DIMENSION: platform,
                batch_names.TEAM_DIMENSION: team,
                batch_names.MODEL_DIMENSION: model,
            },
        )
        [metric] = embedded_metrics(capsys.readouterr().out)
        account.client("cloudwatch").put_metric_data(
            Namespace=metric.namespace,
            MetricData=[
                {
                    "MetricName": metric.name,
                    "Dimensions": [{"Name": key, "Value": value} for key, value in metric.dimensions.items()],
                    "Value": tokens,
                    "Timestamp": end - timedelta(hours=hours_before),
                }
            ],
        )
    found = batch_tokens(
        account,
        platform,
        teams=["search", "ads", "none"],
        models=["small", "large"],
        start=end - timedelta(hours=3),
        end=end,
    )
    assert found == {"small": {"search": 150.0}, "large": {"ads": 7.0}}
