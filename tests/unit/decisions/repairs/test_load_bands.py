"""Load bands, and the slope of latency over load within them."""

from __future__ import annotations

import itertools

import numpy
import pytest

from inference_decisions.repairs.health_settings import DetectionSettings
from inference_decisions.repairs.peer_comparison import load_bands, load_slopes

SETTINGS = DetectionSettings()
MAXIMUM = float(numpy.log1p(SETTINGS.max_excess_load))


def whole(count: int) -> numpy.typing.NDArray[numpy.int64]:
    return numpy.zeros(count, numpy.int64)


def test_a_group_of_similar_loads_stays_whole() -> None:
    load = numpy.linspace(90, 110, 32)
    bands = load_bands(load, whole(32), 1, SETTINGS)
    assert len(set(bands.band.tolist())) == 1
    assert bands.typical[0] == sorted(load)[15]


def test_a_group_of_different_loads_is_cut_by_rank_into_bands_with_enough_workers() -> None:
    load = numpy.random.default_rng(1).permutation(numpy.linspace(10, 400, 32))
    bands = load_bands(load, whole(32), 1, SETTINGS)
    members = [sorted(load[bands.band == band]) for band in sorted(set(bands.band.tolist()))]
    assert [len(each) for each in members] == [8, 8, 8, 8]
    assert all(low[-1] < high[0] for low, high in itertools.pairwise(members))
    for each in members:
        assert set(bands.typical[numpy.isin(load, each)].tolist()) == {each[3]}


@pytest.mark.parametrize(("count", "bands"), [(4, 1), (7, 1), (8, 1), (15, 1), (16, 2), (24, 3), (1000, 4)])
def test_no_band_has_fewer_than_twice_the_least_group(count: int, bands: int) -> None:
    found = load_bands(numpy.linspace(1, 100, count), whole(count), 1, SETTINGS)
    assert len(set(found.band.tolist())) == bands


def test_workers_that_are_counted_twice_do_not_cut_a_group() -> None:
    load = numpy.random.default_rng(2).normal(100, 8, 64)
    load[:12] *= 2
    assert len(set(load_bands(load, whole(64), 1, SETTINGS).band.tolist())) == 1


def test_groups_do_not_mix() -> None:
    load = numpy.array([1.0, 100.0, 2.0, 101.0, 1.5, 102.0])
    group = numpy.array([0, 2, 0, 2, 0, 2])
    bands = load_bands(load, group, 3, SETTINGS)
    assert bands.typical.tolist() == [1.5, 101.0, 1.5, 101.0, 1.5, 101.0]
    assert bands.bands == 3 * SETTINGS.bands
    assert sorted(bands.order.tolist()) == list(range(6))


def test_nobody_is_in_no_band() -> None:
    bands = load_bands(numpy.zeros(0), whole(0), 2, SETTINGS)
    assert len(bands.band) == len(bands.typical) == len(bands.order) == 0
    slope, evidence = load_slopes(numpy.zeros(0), numpy.zeros(0), bands, whole(0), 2, maximum=MAXIMUM)
    assert slope.tolist() == evidence.tolist() == [0.0, 0.0]


def slopes(slower: list[float] | numpy.typing.NDArray[numpy.float64], load: object) -> tuple[float, float]:
    loads = numpy.asarray(load, float)
    group = whole(len(loads))
    bands = load_bands(loads, group, 1, SETTINGS)
    slope, evidence = load_slopes(
        numpy.asarray(slower, float), numpy.log(loads / bands.typical), bands, group, 1, maximum=MAXIMUM
    )
    return float(slope[0]), float(evidence[0])


def test_the_slope_is_found_in_spite_of_a_slow_worker() -> None:
    load = numpy.linspace(85, 115, 16)
    slower = 0.7 * numpy.log(load / 100)
    slower[3] += 0.5
    slope, evidence = slopes(slower, load)
    assert slope == pytest.approx(0.7, abs=0.01)
    assert evidence > 0.1


def test_workers_that_are_counted_twice_do_not_flatten_the_slope() -> None:
    load = numpy.linspace(85, 115, 16)
    slower = 0.7 * numpy.log(load / 100)
    load[[2, 9]] *= 2
    assert slopes(slower, load)[0] == pytest.approx(0.7, abs=0.05)


def test_equal_loads_say_nothing() -> None:
    assert slopes([0.0, 0.1, 0.2, 0.3], [100.0] * 4) == (0.0, 0.0)


@pytest.mark.parametrize(("true", "taken"), [(-1.0, 0.0), (5.0, 2.0)])
def test_a_slope_is_between_none_and_the_steepest(true: float, taken: float) -> None:
    load = numpy.linspace(85, 115, 16)
    assert slopes(true * numpy.log(load / 100), load)[0] == pytest.approx(taken)
