"""The queries of rules, alarms, dashboards and scaling run over the metrics of real vLLM."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from inference_blueprints.render.monitoring.alarm_table import platform_alarms
from inference_blueprints.render.monitoring.recording_rules import BUCKETS
from inference_blueprints.render.monitoring.recordings import recordings
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.spec.types import LatencyPercentiles, Objectives
from inference_local.prometheus.local_prometheus import LocalPrometheus
from inference_local.serving.vllm_cpu.vllm_kind import VllmKind
from tests.engines.running import running_engines
from tests.local.monitoring.asked import (
    SIGNALS,
    panel_queries,
    quickstart,
    reported_here,
    reported_names,
    rule_expressions,
    trigger_expressions,
)
from tests.local.monitoring.live import LivePlatform, live_platform, watched

pytestmark = [pytest.mark.engines, pytest.mark.timeout(3600)]

_STACKS: tuple[dict[str, Any], ...] = ({"dynamo": {}}, {"llmD": {}})
#: A busy machine answers late, and that is no fault: only what takes minutes is late.
_OBJECTIVES = Objectives(
    time_to_first_token_p90_ms=400_000,
    time_per_output_token_p90_ms=70_000,
    request_ms=LatencyPercentiles(p90=1_000_000),
)
#: Metrics that queries name and simulated engines do not report: llm-d has no simulated workers here.
NOT_SIMULATED = {"vllm:generation_tokens_total", "vllm:prompt_tokens_total", "vllm:request_success_total"}


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LivePlatform]:
    blueprint = quickstart()
    folder = tmp_path_factory.mktemp("monitoring")
    with running_engines(blueprint, folder, VllmKind(blueprint)) as running:
        prometheus = LocalPrometheus(folder / "prometheus", running.processes, print)
        plan = build_plan(blueprint)
        name = blueprint.metadata.name
        platform = LivePlatform(prometheus, name, plan, running.serving, running.processes)
        (endpoint,) = running.endpoints
        with watched(platform, endpoint, objectives=_OBJECTIVES, interval_seconds=5):
            yield platform


def _names(platform: LivePlatform) -> set[str]:
    """Return the names of all metrics that frontends and workers report."""
    found = platform.prometheus.query('count by (__name__) ({job="serving",role!=""})')
    return {sample.labels["__name__"] for sample in found}


def _asked() -> set[str]:
    """Return the names of metrics that rules and triggers of either stack ask for."""
    return reported_names(
        expression
        for stack in _STACKS
        for expression in (
            *rule_expressions(stack).values(),
            *(query for signal in SIGNALS for query in trigger_expressions(signal, stack)),
        )
    )


def test_simulated_engines_report_all_but_three_metrics_that_are_asked_for(tmp_path: Path) -> None:
    """Simulated engines report every metric that a rule or a trigger names, but for three of llm-d's."""
    with live_platform(tmp_path) as platform:
        assert _asked() - _names(platform) == NOT_SIMULATED


def test_every_series_of_a_dashboard_is_recorded_from_real_engines(real: LivePlatform) -> None:
    """Every series of a dashboard that needs no exporter has a value from the real engines."""
    here = {name for each in recordings() if reported_here(each) for name in each.series}
    for name, query in panel_queries(real.name).items():
        if name in here:
            for sample in real.prometheus.wait_for(query):
                assert sample.value >= -1e-9, name
        else:
            assert real.prometheus.query(query) == [], f"{name} is recorded without its exporter"


def test_alarms_are_silent_while_real_engines_are_well(real: LivePlatform) -> None:
    """No alarm's query answers while real engines are well."""
    alarms = platform_alarms(real.name, real.plan)
    answers = {alarm.name: real.prometheus.query(alarm.query) for alarm in alarms}
    assert {name: samples for name, samples in answers.items() if samples} == {}


def test_real_engines_report_every_metric_that_is_asked_for(real: LivePlatform) -> None:
    """Real vLLM and Dynamo report every metric that a rule or a trigger names."""
    assert _asked() - _names(real) == set()


@pytest.mark.parametrize("stack", _STACKS, ids=lambda stack: next(iter(stack)))
def test_rules_and_triggers_have_values(stack: dict[str, dict[str, str]], real: LivePlatform) -> None:
    """Rules and triggers of either stack have values over metrics of real engines."""
    for name, expression in rule_expressions(stack).items():
        assert real.prometheus.wait_for(expression), name
    for signal in SIGNALS:
        for query in trigger_expressions(signal, stack):
            assert real.prometheus.number(query) is not None, query


def test_the_buckets_of_real_histograms_are_the_known_ones(real: LivePlatform) -> None:
    """Histograms have exactly the buckets that the share of late requests is computed from."""
    for metric, bounds in BUCKETS.items():
        found = real.prometheus.query(f"count by (le) ({metric}_bucket)")
        reported = {sample.labels["le"] for sample in found}
        assert reported == {*(repr(bound) for bound in bounds), "+Inf"}, metric
