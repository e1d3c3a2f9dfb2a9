"""In the first tier, the children that render prompts and read Parquet are threads of this process.

The threads run the same programs and talk over the same sockets, but nothing limits them. Tests of limits and
of children that die start processes, so they have a mark.
"""

from __future__ import annotations

import importlib
import os
import resource
import threading
from collections.abc import Sequence
from contextlib import suppress
from types import SimpleNamespace

import pytest

from batch.preparation import parquet, row_checks
from tests.plugins.tiers import is_first_tier


class ThreadedChild:
    """Has what parents use of `subprocess.Popen`. It ends when its parent has closed the socket."""

    def __init__(self, command: Sequence[str], *, pass_fds: Sequence[int], **_: object) -> None:
        module, _socket, *words = command[2:]
        [parents] = pass_fds
        main = importlib.import_module(module).main
        self._thread = threading.Thread(target=self._run, args=(main, str(os.dup(parents)), *words))
        self._thread.start()

    @staticmethod
    def _run(main: object, *words: str) -> None:
        assert callable(main)
        with suppress(EOFError, ConnectionError):
            main(*words)

    def kill(self) -> None:
        """Do nothing: the socket is closed."""

    def wait(self, _seconds: float | None = None) -> int:
        self._thread.join()
        return 0


@pytest.fixture(autouse=True)
def children_in_this_process(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if not is_first_tier(request.node):
        return
    monkeypatch.setattr(resource, "setrlimit", lambda *_: None)
    stand_in = SimpleNamespace(Popen=ThreadedChild, DEVNULL=None, TimeoutExpired=TimeoutError)
    for module in (parquet, row_checks):
        monkeypatch.setattr(module, "subprocess", stand_in)
