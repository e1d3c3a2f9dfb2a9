"""A folder is built once, by one holder of its lock; the others wait for it and say so."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from queue import Queue

import pytest

from inference_blueprints import single_build
from inference_blueprints.folder_lock import folder_lock, folder_lock_if_free
from inference_blueprints.single_build import built_here

#: Bounds a hang.
_SECONDS = 60.0


class Lines:
    """Lines of progress, which a test can wait for."""

    def __init__(self) -> None:
        self._queue = Queue[str]()

    def report(self, line: str) -> None:
        self._queue.put(line)

    def wait_for(self, words: str) -> str:
        while words not in (line := self._queue.get(timeout=_SECONDS)):
            pass
        return line


class Build:
    """A build that ends when a test says so, in a thread of its own."""

    def __init__(self, pool: ThreadPoolExecutor, target: Path, error: OSError | None = None) -> None:
        self.lines = Lines()
        self.go_on = threading.Event()
        self._error = error
        self.result: Future[bool] = pool.submit(built_here, target, "tool", self._make, self.lines.report)

    def _make(self, draft: Path) -> None:
        assert list(draft.iterdir()) == []
        (draft / "half").touch()
        assert self.go_on.wait(_SECONDS)
        if self._error:
            raise self._error
        (draft / "half").rename(draft / "whole")


@pytest.fixture
def start(tmp_path: Path) -> Callable[..., Build]:
    pool = ThreadPoolExecutor()
    return lambda error=None: Build(pool, tmp_path / "cache" / "tool", error)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_the_second_waits_and_uses_the_result_of_the_first(
    start: Callable[..., Build], tmp_path: Path
) -> None:
    """Turns red when both build, or when the second uses an incomplete folder."""
    first = start()
    first.lines.wait_for("building")
    second = start()
    second.lines.wait_for("tool: waiting for another process that builds it")
    assert not (tmp_path / "cache" / "tool").exists()

    first.go_on.set()

    assert first.result.result(_SECONDS)
    assert not second.result.result(_SECONDS)
    assert names(tmp_path / "cache") == ["tool"]
    assert names(tmp_path / "cache" / "tool") == ["whole"]


def test_after_a_failed_build_the_second_builds(start: Callable[..., Build], tmp_path: Path) -> None:
    """Turns red when those that wait believe the first, or when its draft remains."""
    first = start(OSError("disk full"))
    first.lines.wait_for("building")
    second = start()
    second.lines.wait_for("waiting")

    first.go_on.set()
    with pytest.raises(OSError, match="disk full"):
        first.result.result(_SECONDS)
    second.lines.wait_for("building")
    second.go_on.set()

    assert second.result.result(_SECONDS)
    assert names(tmp_path / "cache") == ["tool"]


def test_the_draft_of_a_killed_build_does_not_count(start: Callable[..., Build], tmp_path: Path) -> None:
    remains = tmp_path / "cache" / ".tool.draft" / "of-a-killed-process"
    remains.mkdir(parents=True)
    (remains / "half").touch()

    build = start()
    build.go_on.set()

    assert build.result.result(_SECONDS)
    assert names(tmp_path / "cache") == ["tool"]


def test_a_long_build_says_how_long_it_has_taken(
    start: Callable[..., Build], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Turns red when a build, or who waits for it, is silent until its end."""
    monkeypatch.setattr(single_build, "_SECONDS_BETWEEN_LINES", 0.001)
    first = start()
    assert first.lines.wait_for("so far").startswith("tool: building, 0 s")
    second = start()
    assert second.lines.wait_for("so far").startswith("tool: waiting for another process that builds it, ")
    first.go_on.set()
    first.lines.wait_for("tool: built in ")


def test_many_share_a_lock_that_nobody_else_gets(tmp_path: Path) -> None:
    folder = tmp_path / "caches"
    shared = partial(folder_lock, folder, shared=True)
    with shared(), shared(), folder_lock_if_free(folder) as is_held:
        assert not is_held
    with folder_lock_if_free(folder) as is_held:
        assert is_held


def test_a_folder_that_does_not_exist_is_not_locked_and_not_created(tmp_path: Path) -> None:
    with folder_lock_if_free(tmp_path / "caches") as is_held:
        assert not is_held
    assert names(tmp_path) == []


def test_who_waited_for_a_folder_that_was_renamed_locks_a_new_one(tmp_path: Path) -> None:
    """Turns red when a build goes on in caches that are being removed."""
    folder, waits = tmp_path / "caches", threading.Event()

    class Waiting:
        def __enter__(self) -> None:
            waits.set()

        def __exit__(self, *_: object) -> None: ...

    def lock() -> list[str]:
        with folder_lock(folder, shared=True, waiting=Waiting):
            return names(folder)

    folder.mkdir()
    (folder / "content").touch()
    with ThreadPoolExecutor() as pool:
        with folder_lock_if_free(folder) as is_held:
            assert is_held
            content = pool.submit(lock)
            assert waits.wait(_SECONDS)
            folder.rename(tmp_path / "removed")
        assert content.result(_SECONDS) == []
