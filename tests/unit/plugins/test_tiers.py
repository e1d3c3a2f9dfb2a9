"""What a test of the first tier must not do is refused while it runs."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from pathlib import Path
from typing import cast

import pytest

from inference_blueprints import tools
from tests.plugins import tiers


def test_a_program_is_refused_with_what_to_do() -> None:
    with pytest.raises(RuntimeError, match=r"starts python.*; allowed: blueprints, git, .*mark the test"):
        subprocess.run([sys.executable, "-c", ""], check=True)
    with pytest.raises(RuntimeError, match="starts cc"):
        subprocess.run(["anything"], executable="/usr/bin/cc", check=True)


def test_a_program_of_asyncio_is_refused() -> None:
    with pytest.raises(RuntimeError, match="starts go"):
        asyncio.run(asyncio.create_subprocess_exec("go", "build"))


def test_helm_may_start() -> None:
    assert subprocess.run([tools.helm(), "version"], check=True, capture_output=True).stdout


class Item:
    """A collected test."""

    def __init__(self, file: str, *marks: str) -> None:
        self.nodeid, self.marks = f"{file}::test_one", list(marks)

    def get_closest_marker(self, name: str) -> str | None:
        return name if name in self.marks else None

    def add_marker(self, name: str) -> None:
        self.marks.append(name)


def test_only_waiting_tests_of_experimental_features_leave_the_suites_of_every_run(
    monkeypatch: pytest.MonkeyPatch, pytestconfig: pytest.Config
) -> None:
    """A test of the first tier, of a release or of another file that leaves its suite turns this red."""
    named = ("tests/local/test_a.py", "tests/runtime/test_a.py", "tests/llama/test_a.py")
    monkeypatch.setattr(tiers, "BEFORE_RELEASE", frozenset(named))
    # It reads files, which these tests have not.
    monkeypatch.setattr(tiers, "_refuse_hidden_marks", lambda *_: None)
    items = [
        Item("tests/local/test_a.py"),
        Item("tests/runtime/test_a.py", "faults"),
        Item("tests/runtime/test_a.py"),
        Item("tests/llama/test_a.py", "llama"),
        Item("tests/local/test_b.py"),
    ]
    tiers.pytest_collection_modifyitems(pytestconfig, cast("list[pytest.Item]", items))
    assert [item.marks for item in items] == [
        ["clock", "experimental"],
        ["faults", "experimental"],
        [],
        ["llama"],
        ["clock"],
    ]


def test_sleep_is_refused() -> None:
    with pytest.raises(RuntimeError, match=r"sleeps for 0\.25 s; wait for an event"):
        time.sleep(0.25)
    time.sleep(0)  # it lets other threads run


@pytest.mark.thorough
def test_a_test_of_another_suite_may_do_both(tmp_path: Path) -> None:
    time.sleep(0.001)
    subprocess.run([sys.executable, "-c", f"open({str(tmp_path / 'file')!r}, 'w')"], check=True)
    assert (tmp_path / "file").exists()


def test_a_mark_that_the_text_of_its_file_does_not_name_is_refused(tmp_path: Path) -> None:
    """The target of the suite finds files by their text, so it would not run the test."""
    file = tmp_path / "tests" / "templates" / "test_a.py"
    file.parent.mkdir(parents=True)
    file.write_text("def test_one(): ...")
    items = cast("list[pytest.Item]", [Item("tests/templates/test_a.py", "thorough")])
    with pytest.raises(pytest.UsageError, match=r"write pytest.mark.thorough into tests/templates/test_a.py"):
        tiers._refuse_hidden_marks(items, tmp_path)
    file.write_text("# pytest.mark.thorough")
    tiers._refuse_hidden_marks(items, tmp_path)
