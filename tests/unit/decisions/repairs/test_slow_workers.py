"""The comparison of workers, on windows that are written by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy
import pytest

from inference_decisions.repairs.health_settings import DetectionSettings
from inference_decisions.repairs.peer_comparison import FAILURES, compare, join_comparisons
from inference_decisions.repairs.slow_workers import at_equal_load, detect, judge, level_and_spread
from inference_decisions.repairs.worker_windows import WorkerWindows, peer_name

SETTINGS = DetectionSettings()
ROWS = SETTINGS.windows
COUNT = 16


def fleet(count: int = COUNT, *, seed: int = 1, racks: int = 8) -> WorkerWindows:
    """Return healthy workers, each on a node of its own."""
    random = numpy.random.default_rng(seed)
    shape = (ROWS, count)
    load = 100 * numpy.exp(random.normal(0, 0.1, shape))
    numbers = numpy.arange(count)
    return WorkerWindows(
        worker=numbers,
        node=numbers,
        rack=numbers % racks,
        pool=numpy.zeros(count, numpy.int64),
        peers=numpy.full(count, "chat/1/worker/h200"),
        age=numpy.full(count, 86400.0),
        load=load,
        latency=0.02 * (load / 100) ** 0.6 * numpy.exp(random.normal(0, 0.02, shape)),
        requests=numpy.full(shape, 200.0),
        failed=numpy.zeros(shape),
        failed_transfers=numpy.full(shape, numpy.nan),
        empty=numpy.full(shape, numpy.nan),
    )


def slowed(windows: WorkerWindows, workers: Any, slower: float, minutes: int = 3) -> WorkerWindows:
    latency = windows.latency.copy()
    latency[-minutes:, workers] *= 1 + slower
    return replace(windows, latency=latency)


def suspicious(windows: WorkerWindows) -> list[int]:
    return numpy.flatnonzero(detect(windows, SETTINGS).suspicious).tolist()


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("count", [4, 8, 16, 64])
def test_healthy_workers_are_not_suspicious(count: int, seed: int) -> None:
    assert suspicious(fleet(count, seed=seed)) == []


@pytest.mark.parametrize("seed", range(10))
def test_one_of_sixteen_that_is_slower_by_thirty_percent_is_found_in_two_minutes(seed: int) -> None:
    assert suspicious(slowed(fleet(seed=seed), 5, 0.3, minutes=2)) == [5]


def test_one_minute_is_not_enough() -> None:
    assert suspicious(slowed(fleet(), 5, 1.0, minutes=1)) == []


def test_a_worker_that_recovered_is_not_suspicious() -> None:
    windows = slowed(fleet(), 5, 1.0, minutes=3)
    latency = windows.latency.copy()
    latency[-1, 5] /= 2
    assert suspicious(replace(windows, latency=latency)) == []


def test_a_worker_with_more_load_is_not_blamed_for_it() -> None:
    windows = fleet()
    load, latency = windows.load.copy(), windows.latency.copy()
    load[:, 5] *= 1.35
    latency[:, 5] *= 1.35**0.6
    busy = replace(windows, load=load, latency=latency)
    comparison = compare(busy, SETTINGS)
    assert numpy.nanmean(comparison.slower[:, 5]) > 0.14
    assert abs(numpy.nanmean(at_equal_load(comparison, SETTINGS)[:, 5])) < 0.06
    assert suspicious(busy) == []


def test_a_worker_that_is_counted_twice_cannot_be_judged() -> None:
    windows = fleet()
    load, requests = windows.load.copy(), windows.requests.copy()
    load[-2:, 5], requests[-2:, 5] = 2 * load[-2:, 5], 2 * requests[-2:, 5]
    verdicts = detect(slowed(replace(windows, load=load, requests=requests), 5, 0.5, minutes=2), SETTINGS)
    assert not verdicts.decidable[5]
    assert not verdicts.suspicious.any()


def test_a_slow_worker_with_little_load_gets_no_allowance() -> None:
    windows = fleet()
    load = windows.load.copy()
    load[:, 5] *= 0.3
    comparison = compare(replace(windows, load=load), SETTINGS)
    assert (comparison.load[:, 5] == 0).all()


@pytest.mark.parametrize("count", [2, 3])
def test_a_group_of_two_or_three_is_not_judged(count: int) -> None:
    verdicts = detect(slowed(fleet(count, racks=count), 0, 2.0), SETTINGS)
    assert not verdicts.decidable.any()
    assert not verdicts.suspicious.any()


def test_young_and_idle_workers_are_not_judged() -> None:
    windows = slowed(fleet(), [4, 5], 1.0)
    age, requests = windows.age.copy(), windows.requests.copy()
    age[4], requests[:, 5] = SETTINGS.warm_up_seconds - 1, SETTINGS.least_requests - 1
    verdicts = detect(replace(windows, age=age, requests=requests), SETTINGS)
    assert not verdicts.decidable[[4, 5]].any()
    assert not verdicts.suspicious.any()


def test_an_age_counts_at_each_window() -> None:
    # Started 6 minutes ago: warm since one minute, so that only the newest two windows count.
    windows = fleet()
    age = windows.age.copy()
    age[5] = SETTINGS.warm_up_seconds + 60
    known = numpy.isfinite(compare(replace(windows, age=age), SETTINGS).slower[:, 5])
    assert known.tolist() == [False] * (ROWS - 2) + [True, True]


def test_another_revision_is_another_group() -> None:
    windows = slowed(fleet(), slice(0, 8), 0.4, minutes=ROWS)
    names = [peer_name(release="chat", revision=str(number), role="worker", gpu="h200") for number in (2, 1)]
    peers = numpy.repeat(names, 8)
    assert suspicious(replace(windows, peers=peers)) == []
    assert names[0] == "chat/2/worker/h200"


def test_windows_one_by_one_are_the_same_as_at_once() -> None:
    windows = slowed(fleet(), 5, 0.3)
    names = ("load", "latency", "requests", "failed", "failed_transfers", "empty")

    def window(number: int) -> WorkerWindows:
        parts = {name: getattr(windows, name)[number : number + 1] for name in names}
        return replace(windows, age=windows.age - 60.0 * (ROWS - 1 - number), **parts)

    parts = join_comparisons([compare(window(number), SETTINGS) for number in range(ROWS)])
    at_once = compare(windows, SETTINGS)
    for field in ("slower", "load", "load_slope", "load_evidence", "requests"):
        assert numpy.allclose(getattr(parts, field), getattr(at_once, field), equal_nan=True), field
    assert (
        judge(windows, parts, SETTINGS).suspicious.tolist() == detect(windows, SETTINGS).suspicious.tolist()
    )


def test_the_first_windows_after_a_start_are_judged_too() -> None:
    windows = slowed(fleet(), 5, 0.5)
    names = ("load", "latency", "requests", "failed", "failed_transfers", "empty")
    newest = replace(windows, **{name: getattr(windows, name)[-2:] for name in names})
    assert suspicious(newest) == [5]
    one = replace(windows, **{name: getattr(windows, name)[-1:] for name in names})
    assert suspicious(one) == []


def test_a_slow_rack_is_a_shift_and_nobody_is_blamed() -> None:
    windows = fleet(32, racks=4)
    verdicts = detect(slowed(windows, numpy.flatnonzero(windows.rack == 2), 0.5), SETTINGS)
    assert not verdicts.suspicious.any()
    assert {(each.unit, each.name) for each in verdicts.shifts} == {("rack", "2")}
    assert verdicts.shifts[0].workers >= 3
    assert verdicts.shifts[0].slower == pytest.approx(0.5, abs=0.15)


def test_a_slow_part_of_a_release_is_a_shift_of_its_peers_and_nobody_is_blamed() -> None:
    """Twelve of 32 workers on as many racks: few enough to leave the median where it is."""
    windows = replace(fleet(32), rack=numpy.full(32, ""), pool=numpy.arange(32).astype(str))
    verdicts = detect(slowed(windows, list(range(12)), 1.0), SETTINGS)
    assert not verdicts.suspicious.any()
    (shift,) = verdicts.shifts
    assert (shift.unit, shift.name) == ("peers", str(windows.peers[0]))
    assert set(verdicts.suppressed_by[:12]) == {f"peers {shift.name}"}
    # Six of 32 are fewer than 30 %: each of them is found.
    assert suspicious(slowed(windows, list(range(6)), 1.0)) == list(range(6))


def test_workers_on_the_same_node_are_no_companions() -> None:
    windows = fleet(32, racks=4)
    node = windows.node.copy()
    four = numpy.flatnonzero(windows.rack == 2)[:4]
    node[four] = node[four[0]]
    assert suspicious(slowed(replace(windows, node=node), four, 0.5)) == four.tolist()
    assert suspicious(slowed(windows, four, 0.5)) == []


def test_a_rack_without_a_name_has_no_companions() -> None:
    windows = replace(fleet(32), rack=numpy.full(32, ""))
    assert suspicious(slowed(windows, [3, 7], 0.5)) == [3, 7]


def silent(windows: WorkerWindows, workers: Any) -> WorkerWindows:
    parts: dict[str, Any] = {}
    for name in ("load", "latency", "requests", "failed"):
        parts[name] = getattr(windows, name).copy()
        parts[name][-3:, workers] = numpy.nan
    return replace(windows, **parts)


def test_nobody_is_blamed_in_a_rack_that_fell_silent() -> None:
    windows = slowed(fleet(32, racks=4), 2, 0.5)
    others = numpy.flatnonzero(windows.rack == 2)[1:]
    assert suspicious(windows) == [2]
    verdicts = detect(silent(windows, others), SETTINGS)
    assert not verdicts.suspicious.any()
    assert verdicts.suppressed_by[2] == "rack 2"


def test_some_silent_workers_of_a_rack_excuse_nobody() -> None:
    windows = slowed(fleet(32, racks=4), 2, 0.5)
    others = numpy.flatnonzero(windows.rack == 2)[1:]
    assert suspicious(silent(windows, others[:3])) == [2]


def test_a_worker_that_fails_is_found_and_a_release_that_fails_is_not() -> None:
    windows = fleet(32)
    failed = windows.failed.copy()
    failed[-3:, 5] = 40.0
    verdicts = detect(replace(windows, failed=failed), SETTINGS)
    assert numpy.flatnonzero(verdicts.suspicious).tolist() == [5]
    assert verdicts.kind[5] == FAILURES[0]
    failed[-3:] = 40.0
    assert suspicious(replace(windows, failed=failed)) == []


def test_the_spread_is_that_of_the_peers_and_with_few_peers_the_assumed_one() -> None:
    random = numpy.random.default_rng(3)
    requests = numpy.full((ROWS, 400), 200.0)
    wide = random.normal(0, 0.2, (ROWS, 400))
    _, spread = level_and_spread(wide, requests, numpy.zeros(400), 2, SETTINGS)
    # The mean of two windows.
    assert spread[0] == pytest.approx(0.2 / 2**0.5, rel=0.1)
    narrow = random.normal(0, 1e-4, (ROWS, 400))
    _, spread = level_and_spread(narrow, requests, numpy.zeros(400), 2, SETTINGS)
    assert (spread == SETTINGS.min_spread).all()
    alone, spread = level_and_spread(narrow[:, :1], requests[:, :1], numpy.zeros(1), 2, SETTINGS)
    assumed = (SETTINGS.min_spread**2 + SETTINGS.request_spread**2 / 400) ** 0.5
    assert spread[0] == pytest.approx(assumed * 0.8**0.5 * (1 + SETTINGS.small_group), rel=0.01)
    assert alone[0] == pytest.approx(narrow[-2:, 0].mean())


def test_a_level_weighs_windows_by_requests_and_skips_missing_ones() -> None:
    slower = numpy.array([[0.9, 0.0], [0.1, 0.0], [0.4, 0.0]])
    requests = numpy.array([[10.0, 10.0], [30.0, 10.0], [10.0, 10.0]])
    level, _ = level_and_spread(slower, requests, numpy.zeros(2), 2, SETTINGS)
    assert level[0] == pytest.approx((0.1 * 30 + 0.4 * 10) / 40)
    slower[-2:, 0] = numpy.nan
    level, spread = level_and_spread(slower, requests, numpy.zeros(2), 2, SETTINGS)
    assert numpy.isnan(level[0])
    assert numpy.isnan(spread[0])
