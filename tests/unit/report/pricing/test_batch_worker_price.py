"""Workers of batch are in the plan: what they ask for, what Fargate costs, and the addresses of tasks."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from inference_blueprints.report.plan.plan_tables import print_plan
from inference_blueprints.report.plan.section import PlanSummary
from inference_blueprints.report.plan.sections.addresses import ADDRESSES
from inference_blueprints.report.plan.sections.batch_workers import BATCH_WORKERS
from inference_blueprints.report.plan.summary import as_dict, summarise

RATES = {"usdPerMillionInputTokens": 0.1, "usdPerMillionOutputTokens": 1}
TEAM = {"name": "ads", "principals": ["arn:aws:iam::111122223333:role/Ads"], "monthlyBudgetUsd": 10}


def planned(changed: Any, **workers: Any) -> PlanSummary:
    def change(spec: dict[str, Any]) -> None:
        spec["teams"] = [TEAM]
        queue = {"model": spec["models"][0]["name"], "rates": RATES}
        # Two queues of a model have the same workers.
        queues = [{**queue, "name": "nightly"}, {**queue, "name": "urgent"}]
        spec["batch"] = {"queues": queues, "workers": workers}

    scene = changed(change)
    return summarise(scene.blueprint, scene.plan)


def text(summary: PlanSummary) -> str:
    stream = io.StringIO()
    print_plan(summary, Console(file=stream, width=80))
    return stream.getvalue()


def test_tasks_cost_their_vcpus_and_memory(changed: Any) -> None:
    summary = planned(changed, min=2, max=20, ecs={})
    workers = as_dict(summary)["batchWorkers"]
    # A vCPU at 0.04048 USD and 2 GiB at 0.004445 USD.
    assert workers["usdPerHourMin"] == pytest.approx(2 * 0.04937)
    assert workers["usdPerHourMax"] == pytest.approx(20 * 0.04937)
    row = next(line for line in text(summary).splitlines() if "AWS Fargate tasks" in line)
    assert row.split()[-7:] == ["2", "to", "20", "1", "2", "0.10", "0.99"]


def test_a_task_has_an_address_and_its_successor_another(changed: Any) -> None:
    pods, tasks = planned(changed, max=20), planned(changed, max=20, ecs={})
    assert tasks[ADDRESSES].needed == pods[ADDRESSES].needed + 2 * 20
    [row] = [each for each in tasks[ADDRESSES].pools if each.pool == "batch tasks"]
    assert (row.addresses_per_node, row.nodes_max) == (1, 40)


def test_pods_run_on_nodes_that_are_there(changed: Any) -> None:
    summary = planned(changed)
    workers = summary[BATCH_WORKERS]
    assert workers is not None
    assert (workers.workers_min, workers.workers_max, workers.usd_per_hour_max) == (1, 4, None)
    assert "pods on system nodes" in text(summary)


def test_without_batch_there_are_no_workers(changed: Any) -> None:
    scene = changed(lambda spec: spec)
    summary = summarise(scene.blueprint, scene.plan)
    assert summary[BATCH_WORKERS] is None
    assert "Batch workers" not in text(summary)
