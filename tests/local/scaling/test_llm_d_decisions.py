"""Decisions about elastic workers on llm-d: its rendered queries over vLLM's series in a real Prometheus.

The series are written; their names and labels are those that `tests/engines/test_monitoring_queries.py` reads
from real vLLM. The queries ask workers only, so the endpoint picker's metrics decide nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from inference_blueprints.serving.autoscaling.autoscaler import Autoscaler
from inference_blueprints.serving.autoscaling.scaled_object import MetricTrigger, ScaledObject
from inference_local.prometheus.timed_evaluation import TimedEvaluation, TimedQuery, evaluate
from tests.cluster.autoscaling.llm_d_branches import LLM_D_BRANCHES, LlmDBranch, rendered_branch
from tests.local.monitoring.asked import SIGNALS
from tests.local.scaling.llm_d_scaled_object import llm_d_scaled_object

_START, _MAXIMUM = 4, 12
#: A number of workers holds for so long before it is judged: longer than all windows of the object.
_MINUTES = 20
_STEP_SECONDS = 15
_TARGETS = {"tokensInFlight": 10_000, "queueLength": 10, "kvCacheUse": 0.5, "timeToFirstToken": 1000}
#: Values of one worker, by what the load shall do to the number of workers.
_WAITING = {"up": 25, "same": 10, "down": 0}
_USE = {"up": 0.95, "same": 0.5, "down": 0.01}
#: Shares of requests whose first token came within half a second, and those within four.
_FIRST_TOKEN = {"up": ("0+0", "0+60"), "same": ("0+0", "0+0"), "down": ("0+60", "0+60")}


def _scaled_object(signal: str, folder: Path) -> ScaledObject:
    """Return the object that the chart of llm-d renders for a load."""
    load = {"load": {"metric": signal, "target": _TARGETS[signal]}}
    workers = {
        "pool": "l40s",
        "tensorParallelSize": 1,
        "replicas": {"min": 1, "max": _MAXIMUM},
        "scaledBy": load,
    }
    return ScaledObject.read(llm_d_scaled_object({"name": "main", "aggregated": workers}, folder))


def _series(load: str, minutes: int = _MINUTES) -> list[str]:
    """Return what four workers of vLLM report, a value per minute, and an endpoint picker."""
    fast, slow = _FIRST_TOKEN[load]
    found = []
    for number in range(_START):
        labels = (
            f'release="qwen3-8b-main",role="worker",pod="worker-{number}",engine="0",model_name="qwen3-8b"'
        )
        found += [
            f"vllm:num_requests_waiting{{{labels}}} {_WAITING[load]}x{minutes}",
            f"vllm:num_requests_running{{{labels}}} 1x{minutes}",
            f"vllm:kv_cache_usage_perc{{{labels}}} {_USE[load]}x{minutes}",
            *(
                f'vllm:time_to_first_token_seconds_bucket{{{labels},le="{bound}"}} {values}x{minutes}'
                for bound, values in (("0.5", fast), ("4.0", slow), ("+Inf", slow))
            ),
        ]
    picker = 'release="qwen3-8b-main",role="frontend",pod="picker"'
    return [*found, f"inference_extension_flow_control_queue_size{{{picker}}} 900x{minutes}"]


def _readings(scaled: ScaledObject, series: Sequence[str]) -> Sequence[Mapping[str, float | None]]:
    """Return what KEDA reads every 15 seconds."""
    triggers = [each for each in scaled.triggers if isinstance(each, MetricTrigger)]
    end = 60.0 * _MINUTES
    asked = [
        TimedQuery(expression=each.query, start_seconds=0, end_seconds=end, step_seconds=_STEP_SECONDS)
        for each in triggers
    ]
    (answers,) = evaluate([TimedEvaluation(series=series, queries=asked)], lambda _: None)
    found: list[dict[str, float | None]] = [{} for _ in range(60 * _MINUTES // _STEP_SECONDS + 1)]
    for trigger, answer in zip(triggers, answers, strict=True):
        assert len(answer) <= 1, "a trigger must have one number"
        values = dict(answer[0].values) if answer else {}
        for place, reading in enumerate(found):
            value = values.get(float(place * _STEP_SECONDS))
            reading[trigger.name] = None if value is None or math.isnan(value) else value
    return found


def _numbers(scaled: ScaledObject, readings: Sequence[Mapping[str, float | None]]) -> list[int]:
    """Return the number of workers after each decision."""
    autoscaler, current, numbers = Autoscaler(scaled), _START, []
    for place, reading in enumerate(readings):
        now = 1_795_413_600.0 + place * _STEP_SECONDS
        current = autoscaler.decide(now, current, current, reading).desired
        numbers.append(current)
    return numbers


@pytest.mark.parametrize("signal", SIGNALS)
def test_more_load_brings_workers_and_less_takes_them(signal: str, tmp_path: Path) -> None:
    scaled = _scaled_object(signal, tmp_path)
    up = _numbers(scaled, _readings(scaled, _series("up")))
    down = _numbers(scaled, _readings(scaled, _series("down")))
    assert up == sorted(up)
    assert up[-1] > _START
    assert down == sorted(down, reverse=True)
    assert down[-1] < _START


@pytest.mark.parametrize("signal", ["queueLength", "kvCacheUse"])
def test_load_at_the_target_changes_nothing(signal: str, tmp_path: Path) -> None:
    scaled = _scaled_object(signal, tmp_path)
    assert set(_numbers(scaled, _readings(scaled, _series("same")))) == {_START}


def test_the_number_is_that_of_the_waiting_requests(tmp_path: Path) -> None:
    scaled = _scaled_object("queueLength", tmp_path)
    readings = _readings(scaled, _series("up"))
    assert readings[-1] == {
        "queue-length": _START * _WAITING["up"],
        "requests-in-flight": _START * (_WAITING["up"] + 1),
    }
    # Four workers with 25 waiting requests each, at a target of ten.
    assert _numbers(scaled, readings)[-1] == math.ceil(_START * _WAITING["up"] / _TARGETS["queueLength"])


@pytest.mark.parametrize("signal", SIGNALS)
def test_without_vllm_s_series_no_worker_goes(signal: str, tmp_path: Path) -> None:
    scaled = _scaled_object(signal, tmp_path)
    readings = _readings(scaled, [each for each in _series("down") if not each.startswith("vllm:")])
    assert {value for reading in readings for value in reading.values()} == {None}
    assert set(_numbers(scaled, readings)) == {_START}


@pytest.mark.parametrize("branch", LLM_D_BRANCHES, ids=lambda branch: branch.name)
def test_the_simulator_chooses_the_numbers_that_keda_is_compared_with(
    branch: LlmDBranch, tmp_path: Path
) -> None:
    """`make test-scaling` requires the same of the real KEDA and HorizontalPodAutoscaler."""
    begin = 1_795_413_600.0
    rendered = rendered_branch(branch, tmp_path)
    assert rendered.simulated_numbers(("0 0 * * *", "1 0 * * *"), begin, begin + 80) == branch.numbers
