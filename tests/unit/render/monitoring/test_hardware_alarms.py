"""Alarms on hardware: kinds and codes are those of the table of faults; numbers fit the limits."""

from __future__ import annotations

import json
import re

import pytest

from inference_blueprints.loading import load_blueprint
from inference_blueprints.render.eks.chart_values import chart_values
from inference_blueprints.render.monitoring.alarm_table import MAX_CONTRIBUTORS, MAX_QUERY_LETTERS
from inference_blueprints.render.monitoring.hardware_alarms import (
    HardwareAlarm,
    hardware_alarm_rows,
    hardware_alarms,
)
from inference_blueprints.render.monitoring.platform_rules import (
    WORKER_LABELS,
    health_rules,
    worker_recordings,
)
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.spec.types import GpuHealth
from inference_catalog.gpu_faults import gpu_faults_file
from inference_contracts.health_names import CODE_LABEL, NODE_LABELS, WORKER_SERIES
from inference_decisions.repairs.fault_rules import FaultRules, HardwareSignal
from inference_decisions.repairs.repair_case import Evidence

FAULTS = json.loads(gpu_faults_file().read_text("utf-8"))["faults"]
#: What the alarm on Neuron devices has as code: `event_type` and `error_type` of neuron-monitor.
NEURON_CODES = ("mem_ecc_uncorrected", "sram_ecc_uncorrected", "hardware")
ROWS = pytest.mark.parametrize("row", hardware_alarm_rows(), ids=lambda row: row.kind)


@ROWS
def test_its_faults_are_in_the_table_of_faults(row: HardwareAlarm) -> None:
    codes = {str(code) for fault in FAULTS if fault["kind"] == row.kind for code in fault["codes"]}
    assert codes, row.kind
    for fault in row.faults:
        assert fault.code is None or fault.code in codes or "*" in codes


def test_a_memory_error_of_a_neuron_device_suffices_alone_and_a_failed_run_does_not() -> None:
    rules = FaultRules.parsed(gpu_faults_file().read_text("utf-8"))

    def evidence(code: str) -> Evidence | None:
        return rules.evidence(HardwareSignal(kind="neuron", code=code, node="a", at=0.0, source="alarm"))

    fatal = {code: found.fatal for code in NEURON_CODES if (found := evidence(code))}
    assert fatal == {"mem_ecc_uncorrected": True, "sram_ecc_uncorrected": True, "hardware": False}


@ROWS
def test_its_query_names_the_node_and_fits_the_limits(row: HardwareAlarm) -> None:
    query = row.query("shop")
    assert len(query) <= MAX_QUERY_LETTERS
    assert query.startswith(f"topk({MAX_CONTRIBUTORS},")
    assert any(label in query for label in NODE_LABELS)
    assert row.cloudwatch_query or CODE_LABEL in query
    assert "shop" in query


def test_hardware_that_no_pool_has_raises_no_alarm() -> None:
    blueprint = load_blueprint("quickstart-g6e").blueprint
    assert [row.kind for row in hardware_alarms(blueprint.spec.pools)] == [
        *("xid", "row_remap", "ecc", "nvlink", "pcie", "throttle", "dcgm")
    ]
    on_neuron = hardware_alarms(load_blueprint("inf2").blueprint.spec.pools)
    assert [row.kind for row in on_neuron] == ["neuron"]
    with_efa = [blueprint.spec.pools[0].model_copy(update={"efa": True})]
    assert "efa" in {row.kind for row in hardware_alarms(with_efa)}


def test_worker_series_are_those_that_the_functions_read() -> None:
    assert {row.name for row in worker_recordings()} <= set(WORKER_SERIES)
    assert {"pod", "node", "release", "role", "pool"} <= set(WORKER_LABELS)


def test_the_rules_follow_the_section() -> None:
    blueprint = load_blueprint("quickstart-g6e").blueprint
    plan, pools = build_plan(blueprint), blueprint.spec.pools
    name = blueprint.metadata.name

    def recorded(section: GpuHealth | None) -> set[str]:
        return {rule.record for rule in health_rules(name, plan, pools=pools, gpu_health=section)}

    assert recorded(None) == set()
    assert recorded(GpuHealth(slow_gpus=False)) == {"node_hardware_faults"}
    assert recorded(GpuHealth()) == {"node_hardware_faults", *(row.name for row in worker_recordings())}
    # The plan counts them: one series per worker, and none of a healthy node.
    counted = health_rules(name, plan, pools=pools, gpu_health=GpuHealth())
    workers = sum(each.replicas for model in plan.models for d in model.deployments for each in d.workers)
    assert sum(rule.series for rule in counted) == workers * len(worker_recordings())


def test_the_exporter_reports_every_metric_that_a_rule_reads() -> None:
    counters = chart_values("dcgm-exporter", finds_faults=True)["customMetrics"]
    reported = {line.split(",")[0].strip() for line in counters.splitlines()}
    read = {
        metric
        for row in hardware_alarm_rows()
        for fault in row.faults
        for metric in re.findall(r"DCGM_\w+", fault.promql)
    }
    assert read <= reported
    assert "customMetrics" not in chart_values("dcgm-exporter", finds_faults=False)
