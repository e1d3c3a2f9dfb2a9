"""PromQL by a faster clock, the days before the run, and batch's requests in flight."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from inference_local.controllers.metric_answers import BatchInFlight, MetricAnswers, Past
from inference_local.controllers.run_clock import RunClock
from inference_local.prometheus.local_prometheus import Sample

BEGAN = 600_000.0
CLOCK = RunClock(BEGAN, 120.0)
DEMAND = 'sum by (release) (serving_requests_in_flight{platform="chat"})'


@dataclass
class Recorder:
    """A Prometheus with one series, whose value is the time."""

    asked: list[tuple[str, float, float, float]] = field(default_factory=list)
    labels: Mapping[str, str] = field(default_factory=lambda: {"release": "chat"})

    def query(self, expression: str) -> list[Sample]:
        self.asked.append((expression, 0.0, 0.0, 0.0))
        return [Sample(self.labels, 3.0), Sample({"release": "none"}, float("nan"))]

    def query_range(
        self, expression: str, *, start: float, end: float, step_seconds: float
    ) -> list[tuple[Mapping[str, str], list[tuple[float, float]]]]:
        self.asked.append((expression, start, end, step_seconds))
        count = int((end - start) / step_seconds) + 1
        return [(self.labels, [(start + step_seconds * each, float(each)) for each in range(count)])]


def ask(answers: MetricAnswers, query: str, start: float, end: float) -> Any:
    form = {"query": query, "start": str(start), "end": str(end), "step": "60"}
    return answers.answer("/api/v1/query_range", form)["data"]["result"]


def test_times_and_windows_are_those_of_the_run() -> None:
    recorder = Recorder()
    (series,) = ask(MetricAnswers(recorder, CLOCK), "max_over_time(a[60s])", BEGAN + 120, BEGAN + 240)
    assert [at for at, _ in series["values"]] == [BEGAN + 120, BEGAN + 180, BEGAN + 240]
    ((query, start, end, step),) = recorder.asked
    assert (query, step) == ("max_over_time(a[500ms])", 0.5)
    assert abs(start - (BEGAN + 1)) < 1e-6
    assert BEGAN + 2 <= end < BEGAN + 2.01


def test_the_days_before_are_like_the_run() -> None:
    past = Past("chat", demand=lambda second: second)
    answers = MetricAnswers(Recorder(), CLOCK, past)
    (series,) = ask(answers, DEMAND, BEGAN - 86_400, BEGAN - 86_280)
    assert series["metric"] == {"release": "chat"}
    assert [float(value) for _, value in series["values"]] == [0.0, 0.5, 1.0]
    assert ask(answers, DEMAND, BEGAN - 3 * 86_400, BEGAN - 2 * 86_400 - 60) == []


def test_past_and_present_are_one_series() -> None:
    answers = MetricAnswers(Recorder(), CLOCK, Past("chat", demand=lambda _: 7.0))
    (series,) = ask(answers, DEMAND, BEGAN - 60, BEGAN + 60)
    assert series["values"] == [[BEGAN - 60, "7.0"], [BEGAN, "0.0"], [BEGAN + 60, "1.0"]]


def test_other_series_have_no_past() -> None:
    answers = MetricAnswers(Recorder(), CLOCK, Past("chat", demand=lambda _: 7.0))
    assert ask(answers, "serving_workers_up", BEGAN - 120, BEGAN - 60) == []


def test_an_instant_leaves_out_what_is_no_number() -> None:
    answer = MetricAnswers(Recorder(), CLOCK).answer("/api/v1/query", {"query": "a", "time": "5"})
    assert answer["data"]["result"] == [{"metric": {"release": "chat"}, "value": [5.0, "3.0"]}]


def line(at: float, in_flight: float) -> str:
    return json.dumps({"_aws": {"Timestamp": int(at * 1000)}, "InFlight": in_flight}) + "\n"


def test_batch_is_added_up_by_the_minute_and_read_once(tmp_path: Path) -> None:
    batch = BatchInFlight(tmp_path, CLOCK)
    first, second = tmp_path / "one.log", tmp_path / "two.log"
    first.write_text(line(BEGAN - 5, 99) + "InFlight of a program\n" + line(BEGAN + 1, 4))
    second.write_text(line(BEGAN + 1.2, 6) + line(BEGAN + 2, 8)[:-5])
    assert batch.points() == [(BEGAN + 120, 10.0)]
    with second.open("a") as file:
        file.write(line(BEGAN + 2, 8)[-5:])
    assert batch.points() == [(BEGAN + 120, 10.0), (BEGAN + 240, 8.0)]
