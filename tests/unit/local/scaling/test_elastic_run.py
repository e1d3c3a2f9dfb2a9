"""An elastic run: what is decided, counted and reported, without processes or clocks."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest

from inference_blueprints.serving.autoscaling.scaled_object import ScaledObject
from inference_local.scaling.elastic_run import TIME_FACTOR, ElasticRun
from inference_local.scaling.operator_stand_in import ElasticRole
from tests.unit.local.report.samples import answered, failed, result_of, run_of
from tests.unit.local.scaling.fake_workers import FakeWorkers
from tests.unit.serving.autoscaling.scaled_objects import manifest

GPUS, START_SECONDS, MAXIMUM = 2, 3.0, 4


@dataclass
class FakePrometheus:
    """Answers each query with the same number."""

    answer: float | None = 100.0
    queries: list[str] = field(default_factory=list)
    scraped: int = 0
    broken: bool = False

    def number(self, query: str) -> float | None:
        self.queries.append(query)
        return self.answer

    def scrape(self, targets: Any) -> None:
        if self.broken:
            raise RuntimeError("no answer from a frontend")
        self.scraped += len(list(targets))


@dataclass
class FakeServing:
    """A platform of one deployment whose frontends list every running worker, or fewer."""

    workers: FakeWorkers
    unlisted: int = 0
    silent: int = 0

    def registered(self, deployment: Any) -> tuple[int | None, ...]:
        fixed = sum(each.replicas for each in deployment.workers if each.name != "worker")
        running = len(self.workers.running) + fixed
        listed = [running, running - self.unlisted][: 2 - self.silent]
        return (*listed, *[None] * self.silent)


@dataclass
class Scene:
    """A run of one elastic role, beside three fixed prefill workers."""

    run: ElasticRun
    prometheus: FakePrometheus
    serving: FakeServing


def scene(running: int = 1, floor: int | None = None) -> Scene:
    resources = SimpleNamespace(accelerators=SimpleNamespace(count=GPUS))
    kind = SimpleNamespace(
        name="worker", replicas=MAXIMUM, planned=SimpleNamespace(resources=resources, nodes=1)
    )
    fixed = SimpleNamespace(name="prefill", replicas=3)
    deployment = SimpleNamespace(
        workers=(kind, fixed), model=SimpleNamespace(name="qwen3-8b"), plan=SimpleNamespace(release="main")
    )
    workers = FakeWorkers([SimpleNamespace(name=str(index), kind=kind) for index in range(MAXIMUM)])
    workers.running = {str(index) for index in range(running)}
    serving, prometheus = FakeServing(workers), FakePrometheus()
    role = ElasticRole(cast(Any, deployment), cast(Any, kind), START_SECONDS)
    rules = ScaledObject.read(manifest(minimum=1, maximum=MAXIMUM))
    targets = [SimpleNamespace()] * 2
    run = ElasticRun(
        cast(Any, serving),
        cast(Any, prometheus),
        [(role, rules)],
        lambda: cast(Any, targets),
        floor=None if floor is None else lambda _: floor,
    )
    return Scene(run, prometheus, serving)


def test_workers_follow_the_answers_of_prometheus() -> None:
    it = scene()
    it.run.step(0.0)
    it.prometheus.answer = 300.0  # three workers at a target of 100
    for second in range(1, 6):
        it.run.step(float(second))
    outcome = it.run.outcome([run_of(result_of(answered(0.0, 100.0)))])
    assert set(it.prometheus.queries) == {"sum(tokens)"}
    assert it.prometheus.scraped == 6 * 2
    assert [(each.seconds, each.workers, each.desired) for each in outcome.decisions[:3]] == [
        (0.0, 1, 1),
        (1.0, 1, 3),
        (2.0, 3, 3),
    ]
    assert outcome.decisions[1].readings == {"tokens": 300.0}
    assert outcome.decisions[1].role == "main-worker"
    assert outcome.start_seconds == {"main-worker": START_SECONDS}
    assert outcome.time_factor == TIME_FACTOR
    # Wanted at second 1, so their processes run from second 4 on, and are counted ready at the next look.
    assert [each.ready for each in outcome.samples] == [1, 1, 1, 1, 1, 3]
    assert [each.occupying for each in outcome.samples] == [1, 3, 3, 3, 3, 3]
    assert (outcome.workers_min, outcome.workers_max) == (1, 3)


def test_a_floor_that_something_else_decides_holds() -> None:
    it = scene(floor=2)
    it.run.step(0.0)
    it.prometheus.answer = 300.0
    it.run.step(1.0)
    outcome = it.run.outcome([run_of(result_of(answered(0.0, 100.0)))])
    assert [each.desired for each in outcome.decisions] == [2, 3]
    assert outcome.decisions[0].reason == "the floor of the capacity shift"


def test_gpu_hours_are_those_of_workers_that_start_serve_or_end() -> None:
    it = scene()
    it.run.step(0.0)
    it.prometheus.answer = 300.0
    it.run.step(1.0)  # one worker until here
    it.run.step(2.0)  # three from here on
    it.run.step(4.0)
    outcome = it.run.outcome([run_of(result_of(answered(0.0, 100.0)))])
    assert outcome.gpu_hours == pytest.approx(GPUS * (1 + 3 * 3) / 3600)
    assert outcome.gpu_hours_at_most == pytest.approx(GPUS * MAXIMUM * 4 / 3600)
    assert outcome.unused_gpus == {"qwen3-8b": pytest.approx(GPUS * (MAXIMUM - 10 / 4))}


def test_a_worker_is_ready_once_every_frontend_lists_it() -> None:
    it = scene(running=3)
    it.prometheus.answer = 300.0
    it.serving.unlisted = 1
    it.run.step(0.0)
    it.serving.unlisted = 0
    it.run.step(1.0)
    outcome = it.run.outcome([run_of(result_of(answered(0.0, 100.0)))])
    assert [each.ready for each in outcome.samples] == [2, 3]


def test_a_frontend_that_is_too_busy_to_answer_has_not_lost_its_workers() -> None:
    it = scene(running=3)
    it.prometheus.answer = 300.0
    it.run.step(0.0)
    it.serving.silent = 2
    it.run.step(1.0)
    it.serving.silent = 1
    it.run.step(2.0)
    outcome = it.run.outcome([run_of(result_of(answered(0.0, 100.0)))])
    assert [each.ready for each in outcome.samples] == [3, 3, 3]


def test_without_an_answer_the_number_stays_and_the_decision_says_so() -> None:
    it = scene(running=2)
    it.prometheus.answer = None
    for second in range(3):
        it.run.step(float(second))
    decisions = it.run.outcome([run_of(result_of(answered(0.0, 100.0)))]).decisions
    assert [(each.workers, each.desired) for each in decisions] == [(2, 2)] * 3
    readings: list[Mapping[str, float | None]] = [each.readings for each in decisions]
    assert readings == [{"tokens": None}] * 3


def test_cut_streams_began_and_failed_and_lost_requests_failed() -> None:
    it = scene()
    it.run.step(0.0)
    cut = answered(0.0, 100.0)
    whole, never = answered(1.0, 100.0), failed(2.0, "HTTP 503")
    broken = dataclasses.replace(cut, failure="cut")
    outcome = it.run.outcome([run_of(result_of(whole, never, broken))])
    assert (outcome.cut_streams, outcome.lost) == (1, 2)


def _run_a_load(run: ElasticRun, error: Exception | None = None) -> None:
    with run:
        run._thread.join()
        if error is not None:
            raise error


def test_what_breaks_in_the_background_breaks_the_run() -> None:
    it = scene()
    it.prometheus.broken = True
    with pytest.raises(RuntimeError, match="no answer from a frontend"):
        _run_a_load(it.run)


def test_an_error_of_the_load_is_not_hidden_by_one_in_the_background() -> None:
    it = scene()
    it.prometheus.broken = True
    with pytest.raises(KeyError, match="the load"):
        _run_a_load(it.run, KeyError("the load"))
