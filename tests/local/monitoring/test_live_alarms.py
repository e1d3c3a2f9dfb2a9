"""Faults of real processes make the queries of alarms answer; `test_alarms` adds the times of CloudWatch."""

from pathlib import Path

from inference_blueprints.render.monitoring.alarm_table import platform_alarms
from tests.local.monitoring.live import live_platform


def test_a_killed_worker_is_missing_and_its_target_is_down(tmp_path: Path) -> None:
    with live_platform(tmp_path) as platform:
        queries = {alarm.name: alarm.query for alarm in platform_alarms(platform.name, platform.plan)}
        assert platform.prometheus.query(queries["workers-missing"]) == []
        assert platform.prometheus.query(queries["targets-down"]) == []
        platform.serving.kill(platform.serving.first_workers()[0])
        (missing,) = platform.prometheus.wait_for(queries["workers-missing"])
        assert missing.labels["role"] == "worker"
        assert missing.value == 2  # the plan's smallest number
        (down,) = platform.prometheus.wait_for(queries["targets-down"])
        assert (down.labels["role"], down.value) == ("worker", 1)
        assert platform.prometheus.query(queries["metrics-missing"]) == []


def test_a_stopped_prometheus_comes_back_with_its_series(tmp_path: Path) -> None:
    with live_platform(tmp_path) as platform:
        platform.prometheus.stop()
        platform.prometheus.start([])  # nothing is scraped: what it answers is what it kept
        assert platform.prometheus.query("last_over_time(serving_workers_up[5m])")[0].value == 2
