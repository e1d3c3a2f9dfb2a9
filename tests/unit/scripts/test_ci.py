"""What continuous integration runs, on a repository of some commits."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import ci
import psutil
import pytest
from ci import Chosen, SuiteResult
from suites import MARKS, SUITES, Suite

from inference_blueprints.resources import root

Commit = Callable[[str], str]
FOLDER = "/somewhere/ci-x"


@pytest.fixture
def commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Commit:
    """Change a file in a new repository, commit it and return the commit."""
    monkeypatch.setattr(ci, "ROOT", tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("BASE", raising=False)
    for name, value in {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}.items():
        monkeypatch.setenv(name, value)
    settings = ["-c", "user.name=test", "-c", "user.email=test@example.org"]
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)

    def change(name: str) -> str:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(path.read_text() + "\n" if path.exists() else "\n")
        subprocess.run(["git", "add", name], cwd=tmp_path, check=True)
        subprocess.run(["git", *settings, "commit", "--quiet", "-m", name], cwd=tmp_path, check=True)
        return ci.git("rev-parse", "HEAD") or ""

    return change


def test_without_a_known_commit_everything_runs(commit: Commit) -> None:
    commit("a.py")
    assert ci.known_base() is None
    assert ci.why_all(None) == "no commit is known that passed"


def test_a_commit_that_is_gone_or_not_an_ancestor_is_no_base(commit: Commit, tmp_path: Path) -> None:
    first = commit("a.py")
    other = commit("b.py")
    subprocess.run(["git", "reset", "--quiet", "--hard", first], cwd=tmp_path, check=True)
    for base in (other, "0" * 40):
        assert ci.why_all(base) == f"{base[:8]} is not an ancestor of this commit"


def test_a_history_that_was_cut_off_is_no_base(commit: Commit, tmp_path: Path) -> None:
    base = commit("a.py")
    commit("b.py")
    (tmp_path / ".git" / "shallow").write_text(f"{base}\n")
    assert ci.why_all(base) == "the history is not complete"


@pytest.mark.parametrize(
    "name",
    [
        *("Makefile", ".ci/run", "pyproject.toml", "requirements.lock", "package-lock.json"),
        *("tests/conftest.py", "tests/plugins/cost.py", "scripts/ci.py"),
    ],
)
def test_a_change_of_what_all_suites_use_runs_everything(commit: Commit, name: str) -> None:
    base = commit("a.py")
    commit(name)
    assert ci.why_all(base) == f"{name} changed, on which every suite depends"


def test_every_fifth_commit_runs_everything(commit: Commit) -> None:
    commits = [commit("a.py") for _ in range(7)]
    assert ci.why_all(commits[4]) is None, "commits 6 and 7"
    assert ci.why_all(commits[3]) == f"{commits[4][:8]} is commit 5, which divides by 5"
    assert ci.why_all(commits[0]) == f"{commits[4][:8]} is commit 5, which divides by 5"


def test_the_commit_that_passed_is_the_base_of_the_next_run(commit: Commit, tmp_path: Path) -> None:
    passed = commit("a.py")
    ci.passed_file().parent.mkdir(parents=True)
    ci.passed_file().write_text(f"{passed}\n")
    commit("b.py")
    assert ci.known_base() == passed
    assert ci.changed_files(passed) == ["b.py"]
    (tmp_path / "a.py").write_text("not committed")
    assert ci.changed_files(passed) == ["a.py", "b.py"]


def test_the_files_near_a_change_are_chosen(tmp_path: Path) -> None:
    texts = {
        "tests/local/test_far.py": "def test_one(): ...",
        "tests/local/test_near.py": "def test_one(): ...",
        "tests/local/test_lives.py": "@pytest.mark.lives\ndef test_one(): ...",
        "tests/local/test_both.py": "@pytest.mark.lives\ndef test_one(): ...\ndef test_two(): ...",
        "tests/local/test_whole.py": "pytestmark = [pytest.mark.lives]\ndef test_one(): ...",
        "tests/runtime/test_heavy.py": "pytestmark = pytest.mark.thorough",
        "tests/runtime/test_light.py": "",
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    graph = {name: {"runtime/batch/worker.py"} for name in texts if "far" not in name}
    chosen = {
        each.suite.target: each.files for each in ci.choose(["runtime/batch/worker.py"], graph, tmp_path)
    }
    assert chosen == {
        **dict.fromkeys(("lint", "verify", "test", "run")),
        "test-thorough": ("tests/runtime/test_heavy.py",),
        "test-clock": ("tests/local/test_both.py", "tests/local/test_near.py"),
        "check-lives": (
            *("tests/local/test_both.py", "tests/local/test_lives.py", "tests/local/test_whole.py"),
        ),
    }


def test_a_change_of_java_runs_its_suite_whole() -> None:
    chosen = {each.suite.target: each.files for each in ci.choose(["runtime/java/pom.xml"], {})}
    assert chosen["test-java"] is None


def test_waiting_suites_run_alone_and_last() -> None:
    groups = list(ci.in_order(Chosen(suite, None, "") for suite in SUITES))
    assert [each.suite.target for each in groups[0]] == ["lint", "verify"]
    waits = [each.suite.waits for group in groups for each in group]
    assert waits == sorted(waits)
    assert all(len(group) == 1 for group in groups[1:])


def test_repeated_tests_are_named_in_the_summary() -> None:
    text = "RERUN tests/local/test_run.py::test_a[one] - AssertionError\nPASSED\n"
    assert ci.repeated(text) == ("tests/local/test_run.py::test_a[one]",)
    result = SuiteResult("test-clock", passed=True, seconds=60, repeated=ci.repeated(text))
    assert list(ci.summary([result]))[-1] == (
        "repeated: tests/local/test_run.py::test_a[one] (test-clock); "
        "run: make deflake N=20 ONLY=tests/local/test_run.py::test_a"
    )


CLOCK, THOROUGH = (
    next(each for each in SUITES if each.target == name) for name in ("test-clock", "test-thorough")
)


@pytest.mark.parametrize("second_passes", [True, False])
@pytest.mark.parametrize(
    ("suite", "failures", "runs"),
    [(CLOCK, 1, 2), (CLOCK, 3, 2), (CLOCK, 4, 1), (CLOCK, 0, 1), (THOROUGH, 1, 1)],
)
def test_failed_tests_that_wait_are_repeated_once_in_a_new_process(
    *,
    suite: Suite,
    failures: int,
    runs: int,
    second_passes: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Red if a failure passes unseen, if many are repeated, or if a suite passes that names none."""
    commands: list[Sequence[str]] = []
    names = [f"tests/local/test_a.py::test_{each}" for each in range(failures)]

    def shown(name: str, command: Sequence[str], logs: Path) -> SuiteResult:
        commands.append(command)
        lines = ["ERROR in the log", *(f"FAILED {each}[with a space] - Error" for each in names)]
        (logs / name).write_text("\n".join(lines))
        return SuiteResult(name, len(commands) == 2 and second_passes, 1.0, ())

    monkeypatch.setattr(ci, "shown", shown)
    result = ci.run_and_repeat(Chosen(suite, None, ""), tmp_path)
    assert (len(commands), result.seconds) == (runs, runs)
    assert result.passed == (runs == 2 and second_passes)
    assert list(result.repeated) == (names if runs == 2 else [])
    assert all(command[-1] == f"ONLY={' '.join(names)}" for command in commands[1:])


def test_a_whole_suite_collects_only_files_with_its_tests() -> None:
    [only] = [word for word in Chosen(CLOCK, None, "whole").command if word.startswith("ONLY=")]
    assert only.removeprefix("ONLY=").split() == CLOCK.files(root())


@pytest.mark.parametrize("suite", SUITES, ids=lambda suite: suite.target)
def test_each_suite_is_a_target_and_has_tests(suite: Suite) -> None:
    makefile = (root() / "Makefile").read_text(encoding="utf-8")
    assert re.search(rf"^{suite.target}: ", makefile, re.MULTILINE)
    assert not suite.folders or suite.files(root())


def test_each_mark_of_a_suite_takes_a_test_out_of_the_first_tier(pytestconfig: pytest.Config) -> None:
    for mark in MARKS:
        assert f"not {mark}" in " ".join(pytestconfig.getini("addopts")), mark


def test_a_process_that_is_left_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    class Process:
        def __init__(self, pid: int, command: list[str], temporary: str) -> None:
            self.pid = pid
            self._command, self._environment = command, {"TMPDIR": temporary}

        def cmdline(self) -> list[str]:
            return self._command

        def environ(self) -> dict[str, str]:
            return self._environment

    ours = Process(-1, ["valkey-server"], FOLDER)
    program = Process(-2, [f"{ci.ROOT}/.venv/bin/python"], "/elsewhere")
    other = Process(-3, ["bash"], "/elsewhere")
    monkeypatch.setattr(psutil, "process_iter", lambda: [ours, program, other])
    monkeypatch.setattr(psutil, "wait_procs", lambda processes, **_: ([], processes))
    assert ci.processes_left(FOLDER) == [ours, program]
