"""Faults that look like those of alarms: some must raise one, some must not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import psutil

from inference_blueprints.render.monitoring.alarm_table import PlatformAlarm
from inference_blueprints.render.monitoring.recording_rules import RecordingRule
from tests.local.monitoring import series as of
from tests.local.monitoring.asked import alarm_queries, quickstart
from tests.local.monitoring.live import live_platform
from tests.local.monitoring.test_alarms import FAULTS, alarm_minutes, platform

__all__ = ["platform"]  # the fixture
_Platform = tuple[Sequence[RecordingRule], Mapping[str, PlatformAlarm]]
_MINUTES = 120
_GAP_BEGIN, _GAP = 30, 10


def _raised(platform: _Platform, series: of.Series) -> Mapping[str, tuple[float, ...]]:
    found, alarms = platform
    minutes = alarm_minutes(list(alarms.values()), found, series, _MINUTES)
    return {name: at for name, at in minutes.items() if at}


def _flat(series: of.Series, words: str) -> of.Series:
    return {name: f"0x{_MINUTES}" if words in name else values for name, values in series.items()}


def test_requests_that_callers_break_raise_nothing(platform: _Platform) -> None:
    """Every request fails with 400: the platform is well."""
    series = _flat(of.well(_MINUTES), 'status="success"') | of.requests("error", "validation", 600, _MINUTES)
    assert _raised(platform, series) == {}


def test_a_model_without_traffic_raises_nothing(platform: _Platform) -> None:
    series = _flat(of.well(_MINUTES), "dynamo_frontend_")
    assert _raised(platform, series) == {}


def test_a_model_that_was_never_asked_raises_nothing(platform: _Platform) -> None:
    """A frontend has no counters of requests before the first one."""
    series = {
        name: values for name, values in of.well(_MINUTES).items() if not name.startswith("dynamo_frontend_")
    }
    assert _raised(platform, series) == {}


def test_one_failure_of_a_model_that_is_rarely_asked_raises_nothing(platform: _Platform) -> None:
    """One of five requests in an hour fails: that is no rate."""
    (success,) = of.requests("success", "", 0, _MINUTES)
    (failure,) = of.requests("error", "internal", 0, _MINUTES)
    series = _flat(of.well(_MINUTES), "dynamo_frontend_")
    series |= {success: f"0+0.08x{_MINUTES}", failure: f"0x60 1x{_MINUTES - 61}"}
    assert _raised(platform, series) == {}


def _first_worker(series: of.Series) -> str:
    (name,) = [each for each in series if each.startswith("up{") and 'pod="worker-1"' in each]
    return name


def test_a_worker_that_crashes_again_and_again_is_missing(platform: _Platform) -> None:
    """It answers one minute in five, so it is never away for ten minutes."""
    series = of.well(_MINUTES)
    series |= {_first_worker(series): f"1x{_GAP_BEGIN - 1} " + "0 0 0 0 1 " * ((_MINUTES - _GAP_BEGIN) // 5)}
    raised = _raised(platform, series)
    assert set(raised) == {"workers-missing"}
    assert _GAP_BEGIN + 10 <= min(raised["workers-missing"]) <= _GAP_BEGIN + 25


def test_a_worker_that_restarts_once_raises_nothing(platform: _Platform) -> None:
    series = of.well(_MINUTES)
    series |= {_first_worker(series): f"1x{_GAP_BEGIN - 1} 0x6 1x{_MINUTES - _GAP_BEGIN - 8}"}
    assert _raised(platform, series) == {}


def test_requests_that_get_nothing_are_stuck(platform: _Platform) -> None:
    """Engines take requests and generate nothing, and no request ends: none is late, failed or waiting."""
    fault, minutes = FAULTS["requests-stuck"]
    found, alarms = platform
    raised = alarm_minutes(list(alarms.values()), found, fault(of.well(minutes), minutes), minutes)
    assert {name for name, at in raised.items() if at} == {"requests-stuck"}
    assert 25 <= min(raised["requests-stuck"]) <= 35, "ten minutes after minute 20, and the windows"


def test_vectors_have_no_output_tokens_and_are_not_stuck(platform: _Platform) -> None:
    series = {name: values for name, values in of.well(_MINUTES).items() if "output_tokens" not in name}
    assert _raised(platform, series) == {}


def test_a_gap_of_ten_minutes_is_reported_and_nothing_else(platform: _Platform) -> None:
    """No series arrives for ten minutes. Then counters go on where they were, and nothing burns."""
    series = {}
    for name, values in of.well(_MINUTES).items():
        start, _, rise = values.partition("x")[0].partition("+")
        step = f"+{rise}" if rise else ""
        again = float(start) + float(rise or 0) * (_GAP_BEGIN + _GAP)
        after = _MINUTES - _GAP_BEGIN - _GAP
        series[name] = f"{start}{step}x{_GAP_BEGIN - 1} _x{_GAP} {again:g}{step}x{after}"
    raised = _raised(platform, series)
    assert set(raised) <= {"metrics-missing"}
    for at in raised.get("metrics-missing", ()):
        assert _GAP_BEGIN < at <= _GAP_BEGIN + _GAP + 5


def test_a_killed_frontend_is_a_target_that_is_down(tmp_path: Path) -> None:
    """A frontend dies under load. The other one answers, so the model's alarms stay silent."""
    queries = alarm_queries(quickstart())
    with live_platform(tmp_path) as live:
        names = {each.name: each for each in live.serving.served_processes() if each.process == "frontend"}
        assert len(names) == 2
        victim = next(each for each in live.processes.processes if each.name == min(names))
        live.processes.kill(victim)
        (down,) = live.prometheus.wait_for(queries["targets-down"])
        assert (down.labels["role"], down.value) == ("frontend", 1)
        live.prometheus.wait_for("serving_requests_per_second > 0")
        for name in ("workers-missing", "metrics-missing", "requests-waiting", "kv-cache-full"):
            assert live.prometheus.query(queries[name]) == [], name


def test_a_worker_that_hangs_is_missing(tmp_path: Path) -> None:
    """A worker stands still (SIGSTOP): its port is open, and it answers nobody."""
    queries = alarm_queries(quickstart())
    with live_platform(tmp_path) as live:
        name = live.serving.first_workers()[0].name
        victim = next(each for each in live.processes.processes if each.name == name)
        process = psutil.Process(victim.pid)
        process.suspend()
        try:
            (missing,) = live.prometheus.wait_for(queries["workers-missing"])
            assert missing.labels["role"] == "worker"
            live.prometheus.wait_for(queries["targets-down"])
        finally:
            process.resume()
        live.prometheus.wait_for(queries["workers-missing"], lambda samples: not samples)
