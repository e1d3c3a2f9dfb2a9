"""Rules, alarms and dashboards over recorded output of exporters return what the recorded values say.

A real Prometheus scrapes the output, with the labels that the rendered scrape configuration gives it. Then
the same engine evaluates rules and queries at times of their own, because windows last hours.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from string import Template

import pytest

from inference_blueprints.render.monitoring.dashboard_table import dashboard_rows
from inference_blueprints.render.monitoring.recording_rules import rule_file, rules
from inference_blueprints.render.monitoring.recordings import recordings
from inference_blueprints.serving.plan import build_plan
from inference_contracts.metric_labels import GPU_JOB, KEDA_JOB
from inference_local.prometheus.timed_evaluation import TimedEvaluation, TimedQuery, evaluate
from tests.local.monitoring.asked import PRICE, alarm_queries, panel_queries, quickstart, reported_here
from tests.local.monitoring.exporters import FOLDER, PLATFORM, SOURCES, Scraped, scraped

_MINUTES = 30
_BUSY, _IDLE, _IDLE_L40S = "dcgm_t4_busy.prom", "dcgm_l4_idle.prom", "dcgm_l40s_idle.prom"
_EIGHT = "dcgm_h100_dynamo.prom"
_BEFORE, _AFTER = "keda_operator_1.prom", "keda_operator_2.prom"
_GPU_FILES = (_BUSY, _IDLE, _IDLE_L40S, _EIGHT)
_JOBS = dict.fromkeys(_GPU_FILES, GPU_JOB) | dict.fromkeys((_BEFORE, _AFTER), KEDA_JOB)
_EFA = "efa_p4d.prom"

Files = Mapping[str, Sequence[Scraped]]
Answers = Mapping[str, Mapping[frozenset[tuple[str, str]], float]]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    return scraped(tmp_path_factory.mktemp("recorded"), _JOBS)


def _steady(files: Files, *names: str) -> list[str]:
    """Return series that keep the values of recorded files."""
    return [f"{each.notation} {each.value:g}x{_MINUTES}" for name in names for each in files[name]]


def _counting(files: Files) -> list[str]:
    """Return the series of KEDA, whose counters rise every minute as they rose between both recordings."""
    after = {each.notation: each.value for each in files[_AFTER]}
    return [
        f"{each.notation} {each.value:g}+{after[each.notation] - each.value:g}x{_MINUTES}"
        for each in files[_BEFORE]
        if each.name.endswith("_total")
    ]


def _answers(series: Sequence[str], asked: Mapping[str, str] | None = None) -> Answers:
    """Return the last values of queries: by default, of every alarm and every dashboard."""
    blueprint = quickstart()
    found = rules(PLATFORM, build_plan(blueprint), objectives={}, prices=[PRICE])
    asked = asked or {**alarm_queries(blueprint), **panel_queries(PLATFORM)}
    at = 60.0 * _MINUTES
    queries = [TimedQuery(expression=query, start_seconds=at, end_seconds=at) for query in asked.values()]
    (answers,) = evaluate(
        [TimedEvaluation(series=series, queries=queries, rules=rule_file(found))], lambda _: None
    )
    return {
        name: {frozenset(each.labels.items()): each.values[-1][1] for each in answer}
        for name, answer in zip(asked, answers, strict=True)
        if answer
    }


def _value(answers: Answers, name: str) -> float:
    (value,) = answers[name].values()
    return value


def test_every_recorded_file_has_its_source() -> None:
    assert {each["file"] for each in SOURCES} == {path.name for path in FOLDER.glob("*.prom")}
    for each in SOURCES:
        assert each["label"] == "recorded"
        assert re.fullmatch(r"\d{4}-\d{2}-\d{2}", each["date"])
        assert "command" in each or re.fullmatch("[0-9a-f]{40}", each["commit"])


def test_recorded_series_have_the_labels_of_the_platform(files: Files) -> None:
    for number, name in enumerate(_JOBS, start=1):
        assert files[name]
        for each in files[name]:
            assert each.labels["platform"] == PLATFORM
            if _JOBS[name] == GPU_JOB:
                assert (
                    each.labels.items()
                    >= {
                        "pool": "l40s",
                        "node": f"node-{number}",
                        "instance_type": "g6e.2xlarge",
                        "purchase": "on-demand",
                    }.items()
                )


def test_every_line_of_a_recorded_file_is_a_series(files: Files) -> None:
    for name, found in files.items():
        lines = [line for line in _text(name).splitlines() if line and line[0] != "#"]
        # Prometheus adds `up` and four series about the scrape.
        assert len(found) == len(lines) + 5, name


def test_a_busy_and_an_idle_gpu(files: Files) -> None:
    answers = _answers(_steady(files, _BUSY, _IDLE))
    assert {name: _value(answers, name) for name in answers if name.startswith("pool_")} == {
        "pool_gpus": 2,
        "pool_gpus_idle": 1,
        "pool_gpu_use": pytest.approx((0.91 + 0) / 2),
        "pool_gpu_memory_use": pytest.approx(5120 / (5120 + 9791 + 22563)),
        "pool_gpu_errors": 0,
        "pool_nodes": 2,
        "pool_usd_per_hour": pytest.approx(2 * PRICE.usd_per_hour),
    }
    # No worker holds them.
    (labels,) = answers["model_usd_per_hour"]
    assert dict(labels)["model"] == "unattributed"
    assert _value(answers, "model_usd_per_hour") == pytest.approx(2 * PRICE.usd_per_hour)
    assert "gpus-idle" not in answers
    assert "gpu-errors" not in answers


def test_two_idle_gpus_of_three_are_too_many(files: Files) -> None:
    answers = _answers(_steady(files, _BUSY, _IDLE, _IDLE_L40S))
    assert _value(answers, "gpus-idle") == 2


def test_a_node_with_eight_gpus_is_one_node(files: Files) -> None:
    answers = _answers(_steady(files, _EIGHT))
    assert _value(answers, "pool_gpus") == 8
    assert _value(answers, "pool_nodes") == 1
    assert _value(answers, "pool_usd_per_hour") == pytest.approx(PRICE.usd_per_hour)
    # One GPU's memory is full of weights, and yet it computes nothing.
    assert _value(answers, "pool_gpus_idle") == 8


def test_failed_readings_of_keda_are_counted_once(files: Files) -> None:
    answers = _answers(_counting(files))
    # The script's trigger fails on each reading; KEDA counts the same failures per object and per trigger.
    per_object = _rise(files, "keda_scaled_object_errors_total")
    assert per_object > _rise(files, "keda_scaler_detail_errors_total") > 0
    assert _value(answers, "platform_scaler_errors_per_minute") == pytest.approx(per_object)
    assert _value(answers, "scaler-errors") == pytest.approx(per_object)


def _rise(files: Files, name: str) -> float:
    """Return by how much a counter of the failing object rose."""

    def total(file: str) -> float:
        return sum(each.value for each in files[file] if each.name == name)

    return total(_AFTER) - total(_BEFORE)


def test_a_keda_that_reads_everything_is_silent(files: Files) -> None:
    working = [line for line in _counting(files) if 'scaledObject="failing"' not in line]
    answers = _answers(working)
    assert _value(answers, "platform_scaler_errors_per_minute") == 0
    assert "scaler-errors" not in answers


def test_all_series_that_need_an_exporter_have_values(files: Files) -> None:
    answers = _answers([*_steady(files, _BUSY, _IDLE), *_counting(files)])
    shown = panel_queries(PLATFORM)
    series = {name for each in recordings() if not reported_here(each) for name in each.series}
    needed = series & set(shown)
    # Tokens of a model come from its frontends, see `test_costs`.
    assert needed - set(answers) == {"model_usd_per_million_output_tokens"}


def test_recorded_counters_of_efa_under_the_documented_names() -> None:
    """AWS's node exporter recorded values and devices. It reads the counters that the agent reads.

    No recorded output of the agent was found. So its names and labels are those of its documents, see
    ``efa-drops`` in ``alarms.yaml``.
    """
    pattern = r'^node_amazonefa_rx_drops\{device="(\w+)",port="1"\} (\S+)$'
    found = re.findall(pattern, _text(_EFA), re.MULTILINE)
    assert len(found) == 4
    node = f'"@resource.k8s.cluster.name"="{PLATFORM}","@resource.k8s.node.name"="node-1"'
    series = [
        f'{{"efa_rx_dropped",{node},"aws.efa.device"="{device}"}} {value}x{_MINUTES}'
        for device, value in found
    ]
    (insight,) = [each for row in dashboard_rows() for each in row.insights]
    asked = {"graph": Template(insight.query).substitute(cluster=PLATFORM)}
    answers = _answers(series, {**asked, **alarm_queries(quickstart())})
    # Four interfaces without drops are one node without drops.
    assert answers["graph"] == {frozenset({("@resource.k8s.node.name", "node-1")}): 0}
    assert "efa-drops" not in answers


def _text(file: str) -> str:
    return (FOLDER / file).read_text(encoding="utf-8")
