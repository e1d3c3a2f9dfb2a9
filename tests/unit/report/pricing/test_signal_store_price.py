"""The signal store's price is that of ElastiCache serverless, and is shown where there is a store."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from inference_blueprints.report.plan.plan_tables import print_plan
from inference_blueprints.report.plan.sections.signal_store import SIGNAL_STORE
from inference_blueprints.report.plan.summary import as_dict, summarise

RATES = {"usdPerMillionInputTokens": 0.1, "usdPerMillionOutputTokens": 1}


def with_store(spec: dict[str, Any]) -> None:
    spec["teams"] = [
        {"name": "ads", "principals": ["arn:aws:iam::111122223333:role/Ads"], "monthlyBudgetUsd": 10}
    ]
    model = spec["models"][0]["name"]
    spec["batch"] = {"queues": [{"name": "nightly", "model": model, "rates": RATES}]}
    spec["signalStore"] = {"valkey": {"maxGb": 200}, "signals": [{"name": "captions", "team": "ads"}]}


def words(summary: Any) -> list[str]:
    stream = io.StringIO()
    print_plan(summary, Console(file=stream, width=80))
    return stream.getvalue().split()


def test_a_store_costs_what_it_holds_and_what_is_read_and_written(changed: Any) -> None:
    scene = changed(with_store)
    summary = summarise(scene.blueprint, scene.plan)
    price = as_dict(summary)["signalStore"]
    # 200 GB at 0.084 USD; 100 MB are paid for in any case.
    assert price["usdPerHourMax"] == pytest.approx(16.8)
    assert price["usdPerHourMin"] == pytest.approx(0.0084)
    assert {"16.80", "0.0084", "0.0023"} <= set(words(summary))


def test_without_a_store_there_is_no_price(changed: Any) -> None:
    scene = changed(lambda spec: spec)
    summary = summarise(scene.blueprint, scene.plan)
    assert summary[SIGNAL_STORE] is None
    assert "Valkey" not in words(summary)
