"""The capacity shift of a local run: the platform's decision over worker processes of this machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, cast

import pytest
import yaml

from inference_blueprints.loading import parse_blueprint
from inference_blueprints.serving.autoscaling.scaled_object import ScaledObject
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.serving.scaling.shift_of_plan import shift_configuration_of
from inference_contracts.shift_names import ShiftConfiguration
from inference_local.scaling.elastic_run import TIME_FACTOR, ElasticRun
from inference_local.scaling.local_shift import LocalShift, RoleNumbers, local_shift_part
from inference_local.scaling.operator_stand_in import ElasticRole
from tests.templates.shared_platform import ACCELERATORS, document
from tests.unit.local.report.samples import answered, result_of, run_of
from tests.unit.local.scaling.fake_workers import FakeWorkers
from tests.unit.serving.autoscaling.scaled_objects import manifest

LIVE, SHOP, LENT = (("live-main", "worker"), ("shop-main", "worker"), ("nightly-main", "worker"))


@pytest.fixture(scope="module")
def configuration() -> ShiftConfiguration:
    blueprint = parse_blueprint(yaml.safe_dump(document()), "shared.yaml").blueprint
    found = shift_configuration_of(blueprint, build_plan(blueprint))
    assert found is not None
    return found


@dataclass
class Scene:
    """A run of minutes, whose workers are ready at once."""

    shift: LocalShift
    numbers: dict[tuple[str, str], int]
    demand: dict[str, float]
    lent: list[Mapping[str, int]]
    minute: int = 0

    def pass_minutes(self, count: int) -> dict[tuple[str, str], tuple[int, int]]:
        for _ in range(count):
            live = {key: RoleNumbers(number, number) for key, number in self.numbers.items()}
            self.shift.step(60.0 * self.minute, live)
            self.minute += 1
            for key in self.numbers:
                found = self.shift.range_of(*key)
                assert found is not None
                self.numbers[key] = found[0]
        return {key: self.shift.range_of(*key) or (0, 0) for key in self.numbers}


@pytest.fixture
def scene(configuration: ShiftConfiguration) -> Scene:
    demand: dict[str, float] = {}
    lent: list[Mapping[str, int]] = []
    shift = LocalShift(configuration, demand=lambda: demand, needed=lambda _: 0, lend=lent.append)
    return Scene(shift, {LIVE: 2, SHOP: 1, LENT: 1}, demand, lent)


def test_workers_go_to_batch_and_come_back_with_the_load(scene: Scene) -> None:
    """Red if batch keeps what real time needs, if all together exceed the pool, or if batch has no places."""
    assert scene.shift.range_of(*LENT) is None, "nothing is set before the first decision"
    quiet = scene.pass_minutes(40)
    assert (quiet[LIVE], quiet[SHOP]) == ((2, 2), (1, 1))
    assert quiet[LENT] == (ACCELERATORS - 2 - 4, ACCELERATORS - 2 - 4)
    assert scene.lent[-1]["nightly"] > 0
    scene.demand["live-main"] = 1e6
    busy = scene.pass_minutes(5)
    assert (busy[LIVE], busy[LENT]) == ((12, 12), (0, 0))
    assert scene.lent[-1]["nightly"] == 0
    assert scene.shift.moved["nightly-main-server"] == (0, ACCELERATORS - 2 - 4)


def test_a_minute_is_decided_once_and_a_late_one_counts_as_all_that_passed(scene: Scene) -> None:
    scene.pass_minutes(1)
    live = {key: RoleNumbers(number, number) for key, number in scene.numbers.items()}
    scene.shift.step(59.0, live)
    assert len(scene.lent) == 1
    scene.minute = 30
    scene.pass_minutes(1)
    assert len(scene.lent) == 2
    lengths = {len(values) for values in scene.shift._values.values()}
    assert lengths == {2 * 1440 + 1 + 30}


def test_a_run_starts_and_ends_processes_of_batch_as_the_shift_says() -> None:
    """Red if the number is only recorded."""
    resources = SimpleNamespace(accelerators=SimpleNamespace(count=1))
    planned = SimpleNamespace(resources=resources, nodes=1)

    def role_of(release: str, running: int) -> tuple[ElasticRole, FakeWorkers]:
        kind = SimpleNamespace(name="server", role="worker", replicas=1, maximum=4, planned=planned)
        deployment = SimpleNamespace(
            workers=(kind,), model=SimpleNamespace(name=release), plan=SimpleNamespace(release=release)
        )
        workers = FakeWorkers([SimpleNamespace(name=f"{release}{each}", kind=kind) for each in range(4)])
        workers.running = {f"{release}{each}" for each in range(running)}
        return ElasticRole(cast(Any, deployment), cast(Any, kind), 0.0), workers

    (live, of_live), (lent, of_lent) = role_of("live", 1), role_of("lent", 1)
    by_release = {"live": of_live, "lent": of_lent}

    def begin(places: list[Any]) -> None:
        for each in places:
            by_release[each.name[:4]].begin_all([each])

    both = SimpleNamespace(
        of=lambda deployment: by_release[deployment.plan.release].of(deployment),
        runs=lambda worker: worker.name in of_live.running | of_lent.running,
        is_ending=lambda worker: worker.name in of_live.ending | of_lent.ending,
        begin_all=begin,
        end=lambda worker: by_release[worker.name[:4]].end(worker),
    )
    serving = SimpleNamespace(
        workers=both, registered=lambda deployment: (len(by_release[deployment.plan.release].running),)
    )
    ranges = {"live": (1, 2), "lent": (3, 3)}
    seen: list[tuple[float, int]] = []
    shift = SimpleNamespace(
        step=lambda now, numbers: seen.append((now, len(numbers))),
        range_of=lambda release, _: ranges[release],
    )
    prometheus = SimpleNamespace(number=lambda _: 400.0, scrape=lambda _: None)
    run = ElasticRun(
        cast(Any, serving),
        cast(Any, prometheus),
        [(live, ScaledObject.read(manifest(minimum=1, maximum=4)))],
        lambda: (),
        shift=cast(Any, shift),
        lent=[lent],
    )
    for second in range(3):
        run.step(float(second))
    assert len(of_lent.running) == 3
    assert len(of_live.running) == 2, "the load asks for four, and the ceiling is two"
    ranges["lent"] = (0, 0)
    run.step(3.0)
    assert not of_lent.running
    assert seen[1][0] - seen[0][0] == TIME_FACTOR
    assert seen[0][1] == 2
    outcome = run.outcome([run_of(result_of(answered(0.0, 100.0)))])
    assert {each.reason for each in outcome.decisions if each.role == "lent-server"} == {"the capacity shift"}
    assert "the ceiling of the capacity shift" in {each.reason for each in outcome.decisions}
    assert outcome.unused_gpus.keys() == {"live", "lent"}


def test_the_table_of_parts_says_what_does_not_run() -> None:
    part = local_shift_part(15.0)
    assert part.state == "stand-in"
    assert "The function, its table and its freeze switch do not run" in part.detail
