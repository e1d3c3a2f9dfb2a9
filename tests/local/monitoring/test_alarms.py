"""Every alarm is raised by its fault in a real Prometheus, and silent without it.

Series are written or recorded, see `series`; `test_live_alarms` breaks real processes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import pytest

from inference_blueprints.render.monitoring.alarm_table import (
    EVALUATION_SECONDS,
    PlatformAlarm,
    alarm_rows,
    in_alarm,
    platform_alarms,
)
from inference_blueprints.render.monitoring.recording_rules import NodePrice, RecordingRule, rule_file, rules
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.spec.types import Objectives
from inference_local.prometheus.timed_evaluation import TimedEvaluation, TimedQuery, evaluate
from tests.local.monitoring import series as of
from tests.local.monitoring.asked import quickstart
from tests.unit.render.front_door.small_plans import small_plan

_BEFORE = 20  # minutes without the fault
_Fault = Callable[[of.Series, int], of.Series]


def _then(good: str, bad: str, minutes: int) -> str:
    return f"{good}x{_BEFORE - 1} {bad}x{minutes - _BEFORE}"


def _replace(words: str, good: str, bad: str) -> _Fault:
    """Return a fault: from a time on, every series with these words has another value."""

    def break_(series: of.Series, minutes: int) -> of.Series:
        found = {name: _then(good, bad, minutes) for name in series if words in name}
        assert found, words
        return series | found

    return break_


def _failing(series: of.Series, minutes: int) -> of.Series:
    bad = _then("0", "0+30", minutes)
    return series | dict.fromkeys(of.requests("error", "internal", 0, minutes), bad)


def _late(name: str, seconds: float) -> _Fault:
    """Return a fault: from a time on, all observations of a histogram are in a higher bucket."""

    def break_(series: of.Series, minutes: int) -> of.Series:
        later = of.histogram(name, of.FRONTEND, seconds=seconds, per_minute=60, minutes=minutes)
        found = {}
        for each, values in later.items():
            until = series[each].startswith("0+")  # whether it counted before
            count = 60 * _BEFORE if until else 0
            rise = 60 if values.startswith("0+") else 0
            found[each] = f"0+{60 if until else 0}x{_BEFORE - 1} {count}+{rise}x{minutes - _BEFORE}"
        return series | found

    return break_


def _stuck(series: of.Series, minutes: int) -> of.Series:
    """Return engines that stand still: from a time on, no counter of the frontends rises."""
    found = {}
    for name, values in series.items():
        rise = values.partition("x")[0].partition("+")[2]
        if name.startswith("dynamo_frontend_") and rise:
            found[name] = f"0+{rise}x{_BEFORE - 1} {float(rise) * (_BEFORE - 1):g}x{minutes - _BEFORE}"
    assert found
    return series | found


def _gone(words: str) -> _Fault:
    """Return a fault: from a time on, there are no series with these words."""

    def break_(series: of.Series, minutes: int) -> of.Series:
        found = {name: values for name, values in series.items() if words in name}
        assert found, words
        return series | {name: f"{values.partition('x')[0]}x{_BEFORE - 1}" for name, values in found.items()}

    return break_


def _stopped(series: of.Series, minutes: int) -> of.Series:
    """Return a Prometheus that has stopped."""
    return {name: f"{values.partition('x')[0]}x{_BEFORE - 1}" for name, values in series.items()}


def _on_one_replica(metric: str, good: str, bad: str) -> _Fault:
    """Return a fault: from a time on, one replica of the front door reports another value."""

    def break_(series: of.Series, minutes: int) -> of.Series:
        [name] = [each for each in series if each.startswith(f"{metric}{{") and "door-1" in each]
        return series | {name: _then(good, bad, minutes)}

    return break_


def _door_failing(series: of.Series, minutes: int) -> of.Series:
    """Return a front door 3 % of whose answers are errors of the platform."""
    return series | {
        name: _then("0", "0+2", minutes) for name in series if 'class="5xx"' in name and "door_" in name
    }


def _door_slow(series: of.Series, minutes: int) -> of.Series:
    """Return a front door that adds 50 to 100 ms to every request from a time on."""
    found = {
        name: f"0+58x{_BEFORE - 1} {58 * (_BEFORE - 1)}+0x{minutes - _BEFORE}"
        for name in series
        if name.startswith("door_added") and ('le="0.001"' in name or 'le="0.05"' in name)
    }
    assert len(found) == 4
    return series | found


#: The fault of each alarm, and the minutes after which it must be raised.
FAULTS: Mapping[str, tuple[_Fault, int]] = {
    "workers-missing": (_replace("up{" + of.WORKER + ',pod="worker-1"', "1", "0"), 60),
    "workers-late": (_replace("status_desired_replicas", "2", "3"), 120),
    "requests-waiting": (_replace("vllm:num_requests_waiting", "0", "200"), 60),
    "requests-stuck": (_stuck, 60),
    "kv-cache-full": (_replace("vllm:kv_cache_usage_perc", "0.4", "0.99"), 60),
    "targets-down": (_replace('role="frontend",pool="system",pod="frontend-1",node=', "1", "0"), 60),
    "metrics-missing": (_stopped, 60),
    "scaler-errors": (_replace("keda_scaler_detail_errors_total", "0", "0+4"), 60),
    "scaler-gone": (_gone('job="keda"'), 60),
    "gpu-errors": (_replace("DCGM_FI_DEV_XID_ERRORS", "0", "79"), 60),
    "gpus-idle": (_replace("DCGM_FI_DEV_GPU_UTIL", "80", "0"), 420),
    "efa-drops": (_replace("efa_rx_dropped", "0", "0+6000"), 60),
    "door-budget-nearly-spent": (_on_one_replica("door_budget_spent_ratio", "0.5", "0.95"), 60),
    "door-store-lost": (_on_one_replica("door_store_lost_seconds", "0", "90"), 60),
    "door-keys-old": (_on_one_replica("door_key_snapshot_age_seconds", "1.5", "60"), 60),
    "door-platform-keys-late": (_on_one_replica("door_platform_keys_late", "0", "2"), 90),
    "door-answers-failing": (_door_failing, 60),
    "door-slow": (_door_slow, 60),
    "door-settlement-late": (_on_one_replica("door_settlement_lag_seconds", "0.2", "300"), 60),
    "door-records-late": (_on_one_replica("door_records_waiting", "40", "50000"), 60),
    "door-replicas-missing": (_gone('role="door"'), 60),
    "requests-failing-fast": (_failing, 120),
    "requests-failing-slow": (_failing, 120),
    "first-token-late-fast": (_late(of.TTFT, 8), 120),
    "first-token-late-slow": (_late(of.TTFT, 8), 120),
    "output-tokens-late-fast": (_late(of.ITL, 0.5), 120),
    "output-tokens-late-slow": (_late(of.ITL, 0.5), 120),
}


#: One program of KEDA is enough to stop scaling, and a pod that does not answer is as good as none.
#: Other ways to the same alarms.
AND_BY: Mapping[str, tuple[str, _Fault]] = {
    "one replica answers": ("door-replicas-missing", _replace("up{" + of.DOOR + ',pod="door-1"', "1", "0")),
    "records are lost": ("door-records-late", _on_one_replica("door_records_lost_total", "0", "0+5")),
}
PARTLY: Mapping[str, _Fault] = {
    "no operator": _gone('app="keda-operator",'),
    "no adapter": _gone('app="keda-operator-metrics-apiserver"'),
    "silent operators": _replace('app="keda-operator",', "1", "0"),
}
_PRICE = NodePrice(pool="l40s", instance_type="g6e.2xlarge", purchase="on-demand", usd_per_hour=2.2)


@pytest.fixture(scope="module")
def platform() -> tuple[Sequence[RecordingRule], Mapping[str, PlatformAlarm]]:
    load = {"load": {"metric": "queueLength", "target": 10}}
    workers = {"pool": "l40s", "tensorParallelSize": 1, "replicas": {"min": 2, "max": 3}, "scaledBy": load}
    blueprint = quickstart(deployments=[{"name": "main", "aggregated": workers}])
    # What the alarms ask of a front door is only whether there is one.
    plan = replace(build_plan(blueprint), front_door=small_plan())
    name = blueprint.metadata.name
    objectives = {"qwen3-8b": Objectives(time_to_first_token_p90_ms=1000, time_per_output_token_p90_ms=50)}
    found = rules(name, plan, objectives=objectives, prices=[_PRICE])
    return found, {alarm.name: alarm for alarm in platform_alarms(name, plan)}


def alarm_minutes(
    alarms: Sequence[PlatformAlarm], found: Sequence[RecordingRule], series: of.Series, minutes: int
) -> Mapping[str, tuple[float, ...]]:
    """Return the minutes at which each alarm is raised."""
    queries = [
        TimedQuery(
            expression=alarm.query, start_seconds=0, end_seconds=60 * minutes, step_seconds=EVALUATION_SECONDS
        )
        for alarm in alarms
    ]
    asked = set(re.findall(r"\w+", " ".join(alarm.query for alarm in alarms)))
    needed: list[RecordingRule] = []
    for rule in reversed(found):  # a rule uses only those before it
        if rule.record in asked:
            needed.insert(0, rule)
            asked |= set(re.findall(r"\w+", rule.expression))
    evaluation = TimedEvaluation(series=of.lines(series), queries=queries, rules=rule_file(needed))
    (answers,) = evaluate([evaluation], lambda _: None)
    times = [float(at) for at in range(0, 60 * minutes + 1, EVALUATION_SECONDS)]
    return {
        alarm.name: tuple(
            at / 60
            for contributor in answer
            for at in in_alarm(
                (at for at, _ in contributor.values),
                times,
                pending_seconds=alarm.row.pending_seconds,
                recovery_seconds=alarm.row.recovery_seconds,
            )
        )
        for alarm, answer in zip(alarms, answers, strict=True)
    }


def test_every_alarm_has_a_fault() -> None:
    assert set(FAULTS) == {row.name for row in alarm_rows()}


def test_without_a_fault_all_alarms_are_silent(
    platform: tuple[Sequence[RecordingRule], Mapping[str, PlatformAlarm]],
) -> None:
    found, alarms = platform
    raised = alarm_minutes(list(alarms.values()), found, of.well(90), 90)
    assert {name: at[:3] for name, at in raised.items() if at} == {}


@pytest.mark.parametrize("name", FAULTS)
def test_the_fault_raises_the_alarm(
    name: str, platform: tuple[Sequence[RecordingRule], Mapping[str, PlatformAlarm]]
) -> None:
    found, alarms = platform
    fault, minutes = FAULTS[name]
    at = alarm_minutes([alarms[name]], found, fault(of.well(minutes), minutes), minutes)[name]
    assert at
    assert min(at) >= _BEFORE


@pytest.mark.parametrize("name", PARTLY)
def test_one_program_of_keda_is_not_enough(
    name: str, platform: tuple[Sequence[RecordingRule], Mapping[str, PlatformAlarm]]
) -> None:
    found, alarms = platform
    at = alarm_minutes([alarms["scaler-gone"]], found, PARTLY[name](of.well(60), 60), 60)["scaler-gone"]
    assert at
    assert min(at) >= _BEFORE


@pytest.mark.parametrize("way", AND_BY)
def test_another_fault_raises_the_alarm_too(
    way: str, platform: tuple[Sequence[RecordingRule], Mapping[str, PlatformAlarm]]
) -> None:
    found, alarms = platform
    name, fault = AND_BY[way]
    at = alarm_minutes([alarms[name]], found, fault(of.well(60), 60), 60)[name]
    assert at
    assert min(at) >= _BEFORE


def test_one_pod_of_each_program_is_enough(
    platform: tuple[Sequence[RecordingRule], Mapping[str, PlatformAlarm]],
) -> None:
    found, alarms = platform
    series = _gone('instance="1"')(of.well(60), 60)
    assert alarm_minutes([alarms["scaler-gone"]], found, series, 60) == {"scaler-gone": ()}
