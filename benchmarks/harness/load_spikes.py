"""Spikes that are laid over recorded request rates."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product

from inference_blueprints.serving.autoscaling.request_rates import RateWindow, RequestRates

#: Length of the windows of rates with spikes. A spike reaches its height within one.
_WINDOW_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class LoadSpike:
    """Requests that come on top for a while."""

    start_seconds: float
    end_seconds: float
    """`start_seconds`, `end_seconds`: Its time."""
    rate: float
    """Requests per second that come on top."""


def drawn_spikes(
    rates: RequestRates, heights: Iterable[float], lengths_seconds: Iterable[float], seed: int
) -> list[LoadSpike]:
    """Return one spike of each height and length, at a random time of one of equal parts of the rates.

    heights: Requests per second on top.
    lengths_seconds: How long spikes last.
    seed: Of their order and times.
    """
    chance = random.Random(seed)  # noqa: S311 - no secret is made
    kinds = list(product(heights, lengths_seconds))
    chance.shuffle(kinds)
    part = (rates.end_seconds - rates.start_seconds) / len(kinds)
    spikes = []
    for number, (height, length) in enumerate(kinds):
        start = rates.start_seconds + (number + chance.random() * (1.0 - length / part)) * part
        spikes.append(LoadSpike(start, start + length, height))
    return spikes


def with_spikes(rates: RequestRates, spikes: Iterable[LoadSpike]) -> RequestRates:
    """Return the rates with spikes on top, in windows of a minute."""
    on_top = list(spikes)
    number = round((rates.end_seconds - rates.start_seconds) / _WINDOW_SECONDS)
    windows = []
    for index in range(number):
        start = rates.start_seconds + index * _WINDOW_SECONDS
        middle = start + _WINDOW_SECONDS / 2.0
        added = sum(each.rate for each in on_top if each.start_seconds <= middle < each.end_seconds)
        windows.append(RateWindow(start, rates.rate_at(middle) + added, rates.window_at(middle).variation))
    return RequestRates(tuple(windows))
