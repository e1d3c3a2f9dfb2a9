"""Whose pauses pass at once."""

from __future__ import annotations

import threading

import pytest

from tests.runtime import conftest
from tests.runtime.conftest import Pauses


def test_only_the_program_s_own_pauses_pass_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Red if a thread that another test left loops without end, and its pauses count as the program's."""
    waited: list[float] = []
    monkeypatch.setattr(conftest, "_SLEEP", waited.append)
    made: list[Pauses] = []
    begun = threading.Event()

    def pause() -> None:
        begun.wait()
        made[0].pass_by(60)

    other = threading.Thread(target=pause)
    other.start()
    made.append(Pauses())
    begun.set()
    own = threading.Thread(target=made[0].pass_by, args=(3600,))
    own.start()
    other.join()
    own.join()
    made[0].pass_by(7200)
    assert (made[0].seconds, waited) == ([3600, 7200], [60])
