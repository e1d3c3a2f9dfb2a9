"""The two tiers of tests: what every commit runs, and what continuous integration adds.

A test without a mark belongs to the first tier. It starts no program except those in `ALLOWED_PROGRAMS`, and
it never sleeps. A test that does one of them fails with the reason.
Tests of `tests/local` start servers, so each has the mark ``clock`` unless it has the mark of another suite.
Tests of the second tier that only experimental features need get the mark ``experimental``, which takes them
out of the suites of every run. The proofs in `support_levels.json` of the catalogue name their files.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path, PurePath
from typing import Any, SupportsIndex

import pytest
from suites import BEFORE_RELEASE, MARKS, RELEASE_MARKS, SUITES

FIRST_TIER = ("tests/unit/", "tests/charts/", "tests/runtime/", "tests/templates/")
#: Programs that end by themselves in a moment, and CDK's kernel (node). Some tests start `blueprints` itself.
ALLOWED_PROGRAMS = frozenset({"blueprints", "git", "helm", "kubectl", "node"})


class Guard:
    """Refuses what a test of the first tier must not do, while one runs."""

    def __init__(self) -> None:
        self._active = False
        self._older_threads: frozenset[threading.Thread] = frozenset()
        self._sleep = time.sleep
        time.sleep = self._refuse_to_sleep
        sys.addaudithook(
            self._look
        )  # subprocess.Popen raises an audit event; time.sleep does from Python 3.13 on

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self._active = is_first_tier(item)
        # Such as that of the emulator's DynamoDB, which its import starts, and which sleeps for minutes.
        self._older_threads = frozenset(threading.enumerate()) - {threading.main_thread()}
        try:
            return (yield)
        finally:
            self._active = False

    def _look(self, event: str, values: tuple[Any, ...]) -> None:
        if not self._active or event != "subprocess.Popen":
            return
        program = PurePath(str(values[0] or values[1][0])).name
        if program not in ALLOWED_PROGRAMS:
            raise RuntimeError(
                f"a test of the first tier starts {program}; allowed: {', '.join(sorted(ALLOWED_PROGRAMS))}; "
                "test the function itself, or mark the test 'thorough' or 'clock'"
            )

    def _refuse_to_sleep(self, seconds: float | SupportsIndex) -> None:
        # With a time limit, `subprocess` sleeps until an allowed program has ended.
        of_program = sys._getframe(1).f_globals["__name__"] == "subprocess"
        is_older = threading.current_thread() in self._older_threads
        if self._active and seconds != 0 and not of_program and not is_older:
            raise RuntimeError(
                f"a test of the first tier sleeps for {seconds} s; wait for an event or simulate time, "
                "or mark the test 'clock'"
            )
        self._sleep(seconds)


def is_first_tier(item: pytest.Item) -> bool:
    return item.nodeid.startswith(FIRST_TIER) and not _has_suite(item)


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Guard())


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the tests before pytest selects by marks."""
    for item in items:
        if item.nodeid.startswith("tests/local/") and not _has_suite(item):
            item.add_marker("clock")
        of_release = any(item.get_closest_marker(name) for name in RELEASE_MARKS)
        if item.nodeid.partition("::")[0] in BEFORE_RELEASE and not of_release and not is_first_tier(item):
            item.add_marker("experimental")
    _refuse_hidden_marks(items, config.rootpath)


def _refuse_hidden_marks(items: list[pytest.Item], root: Path) -> None:
    """Refuse tests that the target of their suite would not run: it finds their files by the text."""
    for suite in SUITES:
        if suite.tier != "near a change" or suite.mark is None:
            continue
        files = {
            item.nodeid.partition("::")[0]
            for item in items
            if item.get_closest_marker(suite.mark) and not item.get_closest_marker("experimental")
        }
        if hidden := sorted(file for file in files if not suite.has(root, file)):
            raise pytest.UsageError(
                f"write pytest.mark.{suite.mark} into {', '.join(hidden)}, which have such tests"
            )


def _has_suite(item: pytest.Item) -> bool:
    return any(item.get_closest_marker(name) for name in MARKS)
