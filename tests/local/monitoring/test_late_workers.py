"""The alarm `workers-late` knows a worker that never becomes ready from one that starts."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

import pytest

from inference_blueprints.render.monitoring.alarm_table import PlatformAlarm
from inference_blueprints.render.monitoring.recording_rules import RecordingRule, longest_start_seconds
from inference_blueprints.serving.plan import build_plan
from inference_contracts.metric_labels import AUTOSCALER_NAMES
from tests.local.monitoring import series as of
from tests.local.monitoring.asked import quickstart
from tests.local.monitoring.test_alarms import alarm_minutes, platform

__all__ = ["platform"]  # the fixture
_Platform = tuple[Sequence[RecordingRule], Mapping[str, PlatformAlarm]]
_MINUTES = 150
_ASKED = 20  # the minute at which the autoscaler wants a third worker
_WANTED = f"kube_horizontalpodautoscaler_status_desired_replicas{{{of.AUTOSCALER}}}"
_UP = f'up{{{of.WORKER},pod="worker-3",node="node-3"}}'
_READY = f'kube_pod_status_ready{{{of.PLATFORM},pod="worker-3",condition="true"}}'


@pytest.fixture(scope="module")
def start_minutes() -> int:
    """The planned start time of the worker."""
    return math.ceil(longest_start_seconds(build_plan(quickstart())) / 60)


def _raised(platform: _Platform, series: of.Series) -> Sequence[float]:
    found, alarms = platform
    return alarm_minutes([alarms["workers-late"]], found, series, _MINUTES)["workers-late"]


def _third_wanted() -> of.Series:
    return of.well(_MINUTES) | {_WANTED: f"2x{_ASKED - 1} 3x{_MINUTES - _ASKED}"}


def _from(minute: int, value: int = 1, before: str = "_") -> str:
    return f"{before}x{minute - 1} {value}x{_MINUTES - minute}"


def test_a_worker_without_a_node_is_late_after_its_planned_start(
    platform: _Platform, start_minutes: int
) -> None:
    """No capacity: there is no pod that Prometheus could ask."""
    at = _raised(platform, _third_wanted())
    assert _ASKED + start_minutes - 1 <= min(at) <= _ASKED + start_minutes + 4


def test_a_worker_that_answers_and_never_becomes_ready_is_late(
    platform: _Platform, start_minutes: int
) -> None:
    series = _third_wanted() | {_UP: _from(_ASKED + 5), _READY: _from(_ASKED + 5, 0)}
    at = _raised(platform, series)
    assert _ASKED + start_minutes - 1 <= min(at) <= _ASKED + start_minutes + 4


def test_a_normal_start_is_silent(platform: _Platform, start_minutes: int) -> None:
    """The worker answers early, as Dynamo's do, and is ready two minutes before the end of its time."""
    ready = _from(_ASKED + start_minutes - 2, before="0")
    assert _raised(platform, _third_wanted() | {_UP: _from(_ASKED + 5), _READY: ready}) == ()


def test_the_start_of_a_platform_is_silent(platform: _Platform, start_minutes: int) -> None:
    """Nothing is ready at first: rules and autoscaler begin with the platform."""
    series = of.well(_MINUTES)
    for number in (1, 2):
        ready = f'kube_pod_status_ready{{{of.PLATFORM},pod="worker-{number}",condition="true"}}'
        assert ready in series
        series[ready] = _from(start_minutes - 2, before="0")
    assert _raised(platform, series) == ()


def test_it_clears_when_the_worker_is_ready(platform: _Platform, start_minutes: int) -> None:
    ready = _ASKED + start_minutes + 20
    series = _third_wanted() | {_UP: _from(ready), _READY: _from(ready)}
    at = _raised(platform, series)
    assert at
    assert max(at) <= ready + 6


def test_without_kube_state_metrics_the_smallest_number_is_wanted(
    platform: _Platform, start_minutes: int
) -> None:
    series = {name: values for name, values in of.well(_MINUTES).items() if not name.startswith("kube_")}
    assert _raised(platform, series) == ()
    (second,) = [name for name in series if name.startswith("up{") and 'pod="worker-2"' in name]
    at = _raised(platform, series | {second: f"1x{_ASKED - 1} 0x{_MINUTES - _ASKED}"})
    assert _ASKED + start_minutes - 1 <= min(at) <= _ASKED + start_minutes + 4


@pytest.mark.parametrize(
    ("name", "release", "role"),
    [
        ("keda-hpa-qwen3-8b-main-worker", "qwen3-8b-main", "worker"),
        ("keda-hpa-qwen3-8b-main-decode", "qwen3-8b-main", "decode"),
        ("keda-hpa-my-vllm-model-main-vllm-prefill", "my-vllm-model-main", "prefill"),
    ],
)
def test_names_of_autoscalers_have_release_and_role(name: str, release: str, role: str) -> None:
    found = re.fullmatch(AUTOSCALER_NAMES, name)
    assert found is not None
    assert found.groups() == (release, role)
