"""Turns are given by weight, evenly; headers of one connection stay on it."""

from collections import Counter
from http.client import HTTPMessage
from itertools import islice
from typing import Any, cast

from inference_local.serving.http_forwarding import passed_on
from inference_local.serving.relay import turns


def test_a_single_target_always_has_its_turn() -> None:
    assert list(islice(turns([(8000, 1.0)]), 3)) == [8000, 8000, 8000]


def test_turns_follow_the_weights() -> None:
    assert Counter(islice(turns([(1, 0.5), (2, 1.5)]), 40)) == {1: 10, 2: 30}


def test_turns_are_spread_and_not_bunched() -> None:
    taken = list(islice(turns([(1, 2.0), (2, 2.0), (3, 1.0)]), 10))
    assert all(taken[index] != taken[index + 1] for index in range(9))


def test_headers_of_the_connection_stay_and_those_that_it_names() -> None:
    came = [
        ("Connection", "Keep-Alive, x-one"),
        ("connection", "X-Two"),
        ("Keep-Alive", "timeout=5"),
        ("TE", "trailers"),
        ("Transfer-Encoding", "chunked"),
        ("Upgrade", "h2c"),
        ("X-One", "1"),
        ("x-two", "2"),
        ("X-Three", "3"),
        ("Set-Cookie", "a"),
        ("Set-Cookie", "b"),
    ]
    headers = HTTPMessage()
    for name, value in came:
        headers.add_header(name, value)
    assert passed_on(cast("Any", headers)) == came[-3:]
