"""What continuous integration runs, on a repository of some commits."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import ci
import psutil
import pytest
from ci import Chosen, RunningSuite, SuiteResult
from suites import LANES, MARKS, SUITES, Suite

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


def test_each_suite_of_continuous_integration_is_in_one_lane() -> None:
    named = [target for lane in LANES for target in lane]
    assert sorted(named) == sorted(suite.target for suite in SUITES if suite.tier != "release")


def test_suites_run_in_lanes_or_all_after_one_another() -> None:
    chosen = [Chosen(suite, None, "") for suite in SUITES if suite.target != "verify"]
    lanes = ci.in_lanes((each for each in chosen if each.suite.tier != "release"), at_once=True)
    assert [[each.suite.target for each in lane] for lane in lanes] == [
        [target for target in lane if target != "verify"] for lane in LANES
    ]
    [only] = ci.in_lanes(chosen, at_once=False)
    assert {each.suite.target for each in only} == {each.suite.target for each in chosen}
    waits = [each.suite.waits for each in only]
    assert waits == sorted(waits)


class FakeSuites:
    """Suites that end after some looks, each with its output. Time passes by looks."""

    def __init__(self, looks: Mapping[str, int]) -> None:
        self.looks = dict(looks)
        self.events: list[str] = []
        self.running: set[str] = set()

    def start(self, chosen: Chosen, logs: Path) -> RunningSuite:
        name = chosen.suite.target
        self.events.append(f"{name} starts")
        self.running.add(name)
        log = logs / name
        log.write_text(f"what {name} printed\n")
        return RunningSuite(chosen, cast("subprocess.Popen[bytes]", FakeProcess(self, name)), log, 0.0)

    def pass_by(self, _: float) -> None:
        for name in self.running:
            self.looks[name] -= 1


class FakeProcess:
    """The process of such a suite. That of lint fails."""

    def __init__(self, suites: FakeSuites, name: str) -> None:
        self._suites, self._name = suites, name

    def poll(self) -> int | None:
        return self.wait() if self._suites.looks[self._name] <= 0 else None

    def wait(self) -> int:
        self._suites.running.discard(self._name)
        return int(self._name == "lint")


def test_lanes_run_at_once_and_each_output_is_shown_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    suites = FakeSuites({"lint": 1, "test": 2, "test-thorough": 1, "test-clock": 9, "run": 1})
    monkeypatch.setattr(ci, "start", suites.start)
    monkeypatch.setattr(time, "sleep", suites.pass_by)
    chosen = [Chosen(suite, None, "") for suite in SUITES if suite.target in suites.looks]
    results = list(ci.run_lanes(ci.in_lanes(chosen, at_once=True), tmp_path))
    assert [each.target for each in results] == ["lint", "test", "test-thorough", "test-clock", "run"]
    assert suites.events == [
        f"{name} starts" for name in ("lint", "test", "test-clock", "test-thorough", "run")
    ]
    assert [each.target for each in results if not each.passed] == ["lint"]
    shown = capsys.readouterr().out
    for name in suites.looks:
        assert f"\nwhat {name} printed\n" in shown


@pytest.mark.parametrize("target", ["test", "test-clock"])
def test_what_does_not_wait_gives_way(target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A session of its own and a lower priority, or neither."""
    started: list[tuple[Sequence[str], bool]] = []

    def popen(command: Sequence[str], *, start_new_session: bool, **_: object) -> SimpleNamespace:
        started.append((command, start_new_session))
        return SimpleNamespace(pid="none")

    monkeypatch.setattr(subprocess, "Popen", popen)
    ci.start(Chosen(next(each for each in SUITES if each.target == target), None, ""), tmp_path)
    [(command, own_session)] = started
    assert (command[0] == "nice", own_session) == (target == "test", target == "test")
    assert list(command[-3:]) == ["make", "--no-print-directory", target]


def test_repeated_tests_are_named_in_the_summary() -> None:
    text = "RERUN tests/local/test_run.py::test_a[one] - AssertionError\nPASSED\n"
    assert ci.repeated(text) == ("tests/local/test_run.py::test_a[one]",)
    result = SuiteResult("test-clock", passed=True, seconds=60, repeated=ci.repeated(text))
    assert list(ci.summary([result], 90))[-2:] == [
        "together                   1.5 min",
        "repeated: tests/local/test_run.py::test_a[one] (test-clock); "
        "run: make deflake N=20 ONLY=tests/local/test_run.py::test_a",
    ]


CLOCK, THOROUGH = (
    next(each for each in SUITES if each.target == name) for name in ("test-clock", "test-thorough")
)


@pytest.mark.parametrize("second_passes", [True, False])
@pytest.mark.parametrize(
    ("suite", "failures", "runs"),
    [(CLOCK, 1, 1), (CLOCK, 3, 1), (CLOCK, 4, 0), (CLOCK, 0, 0), (THOROUGH, 1, 0)],
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
        return SuiteResult(name, second_passes, 1.0, ())

    monkeypatch.setattr(ci, "shown", shown)
    lines = ["ERROR in the log", *(f"FAILED {each}[with a space] - Error" for each in names)]
    (tmp_path / suite.target).write_text("\n".join(lines))
    first = SuiteResult(suite.target, passed=False, seconds=1.0, repeated=())
    result = ci.repeat_failed(Chosen(suite, None, ""), first, tmp_path)
    assert (len(commands), result.seconds) == (runs, runs + 1)
    assert result.passed == (runs == 1 and second_passes)
    assert list(result.repeated) == (names if runs == 1 else [])
    assert all(command[-1] == f"ONLY={' '.join(names)}" for command in commands)


@pytest.mark.parametrize("suite", [each for each in SUITES if each.tier == "near a change" and each.mark])
def test_a_whole_suite_collects_only_files_with_its_tests(suite: Suite) -> None:
    makefile = (root() / "Makefile").read_text(encoding="utf-8")
    [command] = re.findall(rf"^{suite.target}:.*\n(?:\t@.*\n)*\t(.*)", makefile, re.MULTILINE)
    assert f"$(or $(ONLY),$(FILES)) -m '{suite.mark} and not experimental'" in command


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
