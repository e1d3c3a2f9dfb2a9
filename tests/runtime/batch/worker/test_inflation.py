"""How long answers take is learnt by length while little is asked, and compared after that."""

from __future__ import annotations

import pytest

from batch.contracts.shard import Usage
from batch.worker.inflation import Inflation

SHORT, LONG = Usage(100, 0, 50), Usage(9000, 0, 800)


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def learnt(*usages: Usage, clock: Clock | None = None) -> Inflation:
    inflation = Inflation(1.2, clock=clock or Clock())
    for number in range(16):
        assert inflation.learns
        usage = usages[number % len(usages)]
        assert not inflation.answered(usage, seconds(usage), 8)
    assert not inflation.learns
    return inflation


def seconds(usage: Usage, times: float = 1.0) -> float:
    return times * usage.output_tokens / 100


@pytest.mark.parametrize("times", [0.6, 1.2, 2.4])
@pytest.mark.parametrize("usage", [SHORT, LONG])
def test_each_length_is_compared_with_its_own(usage: Usage, times: float) -> None:
    inflation = learnt(SHORT, LONG)
    judged = [inflation.answered(usage, seconds(usage, times), 8) for _ in range(32)]
    assert judged[:31] == [0.0] * 31
    assert judged[31] == pytest.approx(max(0, times - 1) / 0.2)
    assert not inflation.learns


def test_a_few_that_take_long_are_no_sign() -> None:
    inflation = learnt(SHORT)
    times = [9.0] * 12 + [1.0] * 20
    assert max(inflation.answered(SHORT, seconds(SHORT, each), 8) for each in times) < 1


def test_a_judgement_is_by_as_many_answers_as_may_be_in_flight() -> None:
    inflation = learnt(SHORT)
    judged = [inflation.answered(SHORT, seconds(SHORT, 2.4), 100) for _ in range(100)]
    assert judged == [0.0] * 99 + [pytest.approx(1.4 / 0.2)]


def test_what_the_cache_held_is_no_length() -> None:
    inflation = learnt(SHORT)
    cached = Usage(10_000, 9_900, 50)
    assert max(inflation.answered(cached, seconds(cached, 2.4), 8) for _ in range(32)) > 1


def test_lengths_that_are_not_known_are_learnt() -> None:
    inflation = learnt(SHORT)
    for _ in range(33):
        assert not inflation.learns
        assert not inflation.answered(LONG, seconds(LONG, 9.0), 8)
    assert inflation.learns


def test_all_workers_learn_anew_at_the_same_moments() -> None:
    for begin in (1000.0, 1790.0):
        clock = Clock()
        clock.now = begin
        inflation = learnt(SHORT, clock=clock)
        clock.now = 1799.0
        assert not inflation.answered(SHORT, seconds(SHORT), 8)
        assert not inflation.learns
        clock.now = 1800.0
        assert not inflation.answered(SHORT, seconds(SHORT), 8)
        assert inflation.learns


def test_what_takes_long_is_learnt_from_few() -> None:
    clock = Clock()
    inflation = Inflation(1.2, clock=clock)
    for _ in range(2):
        assert inflation.learns
        clock.now += 40
        inflation.answered(LONG, 40.0, 8)
    assert not inflation.learns
    assert max(inflation.answered(LONG, 80.0, 8) for _ in range(32)) == pytest.approx(1 / 0.2)
