"""The section "Last result" of docs/real-engines.md is what `make test-engines` measured and nothing else."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.plugins import engine_results

pytest_plugins = ["pytester"]

_TESTS = '''
import pytest

def test_works():
    """It works | well."""

@pytest.mark.parametrize("side", ["left", "right"])
def test_sides(side):
    """Both sides work."""
    assert side in {sides}

@pytest.mark.skip(reason="needs a GPU")
def test_other():
    """Something else."""
'''
_BUSY = """
import time, pytest

@pytest.mark.parametrize("seconds", [0, 0.3])
def test_computes(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass
"""


TWO_CASES = r"\| 2 cases passed \| \d+ s \| 20"


class Checkout:
    """A folder with a page and tests of its own."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        self._pytester = pytester
        folder = self.folder = pytester.path
        for part in ("docs", "tests/engines"):
            (folder / part).mkdir(parents=True)
        self.page.write_text(f"# Page\n\n{engine_results.BEGIN}\n\nold\n\n{engine_results.END}\n\nrest\n")
        self.add("test_a.py", _TESTS.format(sides="{'left', 'right'}"))

    @property
    def page(self) -> Path:
        return self.folder / engine_results.PAGE

    def add(self, name: str, text: str) -> None:
        (self.folder / engine_results.FOLDER / name).write_text(text)

    def run(self, *arguments: str) -> pytest.RunResult:
        plugins = ["-p", "tests.plugins.cost", "-p", "tests.plugins.engine_results", "-p", "no:cacheprovider"]
        settings = ["-c", os.devnull, "--rootdir", str(self.folder), "-o", "markers=engines"]
        # In this process: starting one for each run would take most of the time of these tests.
        return self._pytester.runpytest_inprocess(*plugins, *settings, *arguments, "-m", "engines")

    def write(self, *arguments: str) -> str:
        ran = self.run(*arguments, "--engine-results", ".")
        assert ran.ret in {
            pytest.ExitCode.OK,
            pytest.ExitCode.TESTS_FAILED,
            pytest.ExitCode.NO_TESTS_COLLECTED,
        }
        return self.page.read_text()


@pytest.fixture
def checkout(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Checkout:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # a file is written twice within a second
    monkeypatch.setenv("XDG_CACHE_HOME", str(pytester.path / "cache"))
    return Checkout(pytester)


def test_a_run_writes_what_each_test_shows_and_how_it_ended(checkout: Checkout) -> None:
    page = checkout.write("tests/engines")
    assert "old" not in page
    assert page.startswith("# Page\n")
    assert page.endswith("\n\nrest\n")
    assert "4 cases of 3 tests: 3 passed, 1 skipped." in page
    assert "vLLM not installed" in page, "this run has no environment"
    assert "| It works \\| well. | `test_a.py` | passed |" in page
    assert "| Both sides work. | `test_a.py` | 2 cases passed |" in page
    assert "| Something else. | `test_a.py` | skipped: needs a GPU |" in page


def test_a_failed_case_is_named(checkout: Checkout) -> None:
    checkout.add("test_a.py", _TESTS.format(sides="{'left'}"))
    page = checkout.write("tests/engines")
    assert "2 passed, 1 failed, 1 skipped." in page
    assert "| right failed; 1 passed |" in page


def test_a_run_of_some_tests_keeps_the_other_results_with_their_date(checkout: Checkout) -> None:
    checkout.write("tests/engines")
    results = engine_results.read(checkout.folder)
    for test in results.values():
        for case in test.cases.values():
            case.date = "2026-01-02"
    engine_results.write(checkout.folder, results)
    checkout.add("test_b.py", 'def test_more():\n    """More."""\n')
    page = checkout.write("tests/engines/test_b.py")
    assert page.count(" | 2026-01-02 |") == 3
    assert re.search(r"\| More\. \| `test_b\.py` \| passed \| \d+ s \| 20", page)

    page = checkout.write("tests/engines/test_a.py::test_sides[left]")
    assert re.search(TWO_CASES, page), "the other case stays"
    page = checkout.write("tests/engines", "-k", "test_sides and right")
    assert re.search(TWO_CASES, page)
    (checkout.folder / "tests/engines/test_b.py").unlink()
    checkout.add(
        "test_a.py", _TESTS.format(sides="{'left', 'right'}").replace('["left", "right"]', '["left"]')
    )
    page = checkout.write("tests/engines/test_a.py")
    assert "More." not in page, "a test that does not exist any more"
    assert "| Both sides work. | `test_a.py` | passed |" in page, "a case that does not exist any more"


def test_without_the_option_or_without_tests_the_page_stays(checkout: Checkout) -> None:
    before = checkout.page.read_text()
    assert checkout.run("tests/engines").ret == 0
    assert checkout.write("tests/engines", "-k", "nothing") == before


def test_a_test_without_docstring_shows_what_its_name_says(checkout: Checkout) -> None:
    checkout.add("test_a.py", "def test_each_line_is_answered_once():\n    pass\n")
    assert "| Each line is answered once. | `test_a.py` | passed |" in checkout.write("tests/engines")


def test_other_tests_are_not_marked(checkout: Checkout) -> None:
    (checkout.folder / "tests/unit").mkdir()
    (checkout.folder / "tests/unit/test_c.py").write_text("def test_plain():\n    pass\n")
    assert "1 deselected" in checkout.run("tests/unit").stdout.str()


def test_a_case_has_its_own_cost_and_the_commit_that_ran(checkout: Checkout) -> None:
    def git(*words: str) -> str:
        names = ["-c", "user.name=x", "-c", "user.email=x@example.com"]
        return subprocess.run(
            ["git", *names, *words], cwd=checkout.folder, capture_output=True, text=True, check=True
        ).stdout.strip()

    checkout.add("test_a.py", _BUSY)
    git("init", "--quiet")
    (checkout.folder / ".gitignore").write_text("__pycache__\n")
    git("add", ".")
    git("commit", "--quiet", "--message", "tests")
    commit = git("rev-parse", "--short=8", "HEAD")
    assert f"`{commit}` |" in checkout.write("tests/engines")
    [test] = engine_results.read(checkout.folder).values()
    costs = [case.processor_seconds or 0.0 for case in test.cases.values()]
    assert costs[0] < 0.3 <= costs[1]
    assert f"`{commit}` |" in checkout.write("tests/engines"), "the first results are no change"
    checkout.add("test_a.py", "def test_waits():\n    pass\n")
    assert f"`{commit} with changes` |" in checkout.write("tests/engines")


def test_cases_without_a_result_can_be_listed_as_not_run(checkout: Checkout) -> None:
    checkout.write("tests/engines")
    checkout.add("test_a.py", _TESTS.format(sides="{'left', 'right'}").replace('"right"]', '"top"]'))
    checkout.add("test_b.py", 'def test_more():\n    """More."""\n')
    page = checkout.write("tests/engines", "--collect-only")
    assert "5 cases of 4 tests: 2 passed, 1 skipped, 2 not run yet." in page
    assert "| More. | `test_b.py` | not run yet |  |  |" in page
    assert "| Both sides work. | `test_a.py` | top not run yet; 1 passed |" in page
    assert checkout.run("tests/engines/test_b.py", "--collect-only", "--engine-results", ".").ret != 0
    assert "| More. | `test_b.py` | passed |" in checkout.write("tests/engines/test_b.py")
