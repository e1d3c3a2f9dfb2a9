"""Whose pauses pass at once."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from tests.runtime.conftest import Pauses


@pytest.fixture
def rounds() -> Iterator[threading.Semaphore]:
    """Counts the pauses of a thread that another test left."""
    counted, ended = threading.Semaphore(0), threading.Event()

    def pause() -> None:
        while not ended.is_set():
            time.sleep(0.001)
            counted.release()

    thread = threading.Thread(target=pause)
    thread.start()
    yield counted
    ended.set()
    thread.join()


def test_only_the_program_s_own_pauses_pass_at_once(rounds: threading.Semaphore, pauses: Pauses) -> None:
    """Red if a thread that another test left loops without end, and its pauses count as the program's."""
    own = threading.Thread(target=time.sleep, args=(3600,))
    own.start()
    own.join()
    for _ in range(3):
        assert rounds.acquire(timeout=60)
    time.sleep(7200)
    assert pauses.seconds == [3600, 7200]
