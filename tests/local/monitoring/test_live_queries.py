"""Every recorded series that real frontends and simulated engines feed exists, with the right labels."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from inference_blueprints.render.monitoring.alarm_table import platform_alarms
from inference_blueprints.render.monitoring.recordings import Recording, recordings
from tests.local.monitoring.asked import SIGNALS, reported_here, trigger_expressions
from tests.local.monitoring.live import LivePlatform, live_platform


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LivePlatform]:
    with live_platform(tmp_path_factory.mktemp("monitoring")) as platform:
        yield platform


@pytest.mark.parametrize(
    "recording", [each for each in recordings() if reported_here(each)], ids=lambda each: each.name
)
def test_a_recorded_series_exists_with_its_labels(recording: Recording, live: LivePlatform) -> None:
    prometheus, platform = live.prometheus, live.name
    assert set(recording.promql) & {"dynamo", "vllm", "any"}
    for series in recording.series:
        for sample in prometheus.wait_for(series):
            assert set(sample.labels) == {"__name__", *recording.labels}
            assert sample.labels["platform"] == platform
            assert sample.value >= -1e-9


def test_alarms_are_silent_and_valid_while_all_is_well(
    live: LivePlatform,
) -> None:
    prometheus, platform, plan = live.prometheus, live.name, live.plan
    prometheus.wait_for("serving_workers_up == 2")
    prometheus.wait_for("serving_workers_least")
    answers = {alarm.name: prometheus.query(alarm.query) for alarm in platform_alarms(platform, plan)}
    assert {name: samples for name, samples in answers.items() if samples} == {}


def test_open_requests_are_counted_once_by_several_frontends(
    live: LivePlatform,
) -> None:
    prometheus = live.prometheus
    # Six callers: with double counting, there would be up to twelve.
    found = prometheus.wait_for("serving_requests_in_flight > 0")
    assert 1 <= found[0].value <= 6


@pytest.mark.parametrize("signal", SIGNALS)
def test_a_trigger_of_scaling_has_one_number(signal: str, live: LivePlatform) -> None:
    for query in trigger_expressions(signal, {"dynamo": {}}):
        assert live.prometheus.number(query) is not None, query
