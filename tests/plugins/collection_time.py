"""Simulates hours between collection and the first test, so that no test depends on the run time of others.

Only imports and collection use a late clock. Tests and the processes that they start use the real clock.
"""

from __future__ import annotations

import datetime

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--hours-since-collection",
        type=float,
        default=0.0,
        metavar="HOURS",
        help="collect the tests with a clock that is this many hours late, then run them with the real one",
    )


class LateClock:
    """A clock that is late until collection ends."""

    def __init__(self, hours: float) -> None:
        import time_machine  # noqa: PLC0415 - patches the interpreter's clock functions when it is imported

        now = datetime.datetime.now(datetime.UTC)
        self._clock = time_machine.travel(now - datetime.timedelta(hours=hours), tick=True)
        self._clock.start()

    def pytest_collection_finish(self) -> None:
        self._clock.stop()


def pytest_configure(config: pytest.Config) -> None:
    hours = config.getoption("hours_since_collection")
    if hours:
        config.pluginmanager.register(LateClock(hours))
