"""Turns are given by weight, evenly."""

from collections import Counter
from itertools import islice

from inference_blueprints.local.serving.relay import turns


def test_a_single_target_always_has_its_turn() -> None:
    assert list(islice(turns([(8000, 1.0)]), 3)) == [8000, 8000, 8000]


def test_turns_follow_the_weights() -> None:
    assert Counter(islice(turns([(1, 0.5), (2, 1.5)]), 40)) == {1: 10, 2: 30}


def test_turns_are_spread_and_not_bunched() -> None:
    taken = list(islice(turns([(1, 2.0), (2, 2.0), (3, 1.0)]), 10))
    assert all(taken[index] != taken[index + 1] for index in range(9))
