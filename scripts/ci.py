"""Continuous integration: the suites of what a change touches, or all that fit; then no process may be left.

``.ci/run`` starts it. A run compares with the last commit for which it passed on this machine. Every suite
except those of a release runs in three cases: that commit is unknown or not an ancestor, a file changed on
which all suites depend, or the range holds a commit whose number in the history divides by five. Otherwise
those run that belong to every run, and those tests of the others that are near a change (`import_graph`).

The lanes of `suites.LANES` run at once. Suites that do not wait for time to pass give way to those that do.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Container, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import import_graph
import psutil
from children import end_with_children
from run_tests import PERCENT
from suites import LANES, RESULTS, SUITES, Suite

from inference_blueprints import tools

ROOT = Path(__file__).resolve().parent.parent
say = partial(print, flush=True)
#: A change of these concerns every suite.
COMMON = re.compile(
    r"Makefile|\.ci/.*|pyproject\.toml|requirements\.lock|package(-lock)?\.json|scripts/(ci|suites|import_graph)\.py"
    r"|scripts/setup\.sh|tests/(conftest\.py|plugins/.*)|catalog/inference_catalog/data/support_levels\.json"
)
#: Every so many commits, everything runs: a chain of imports can be longer than what counts as near.
FULL_EVERY = 5
#: How much less the processors are for suites that do not wait, in the steps of nice(1).
_NICE = "10"
_LOOK_SECONDS = 0.5
_PROGRESS_SECONDS = 60.0
#: How long a process that was told to end may take.
_ENDING_SECONDS = 10.0
#: Where pytest names tests that failed, and where `test_java.sh` names those that passed when repeated.
_FAILED = re.compile(r"^(?:FAILED|ERROR) ([^\s\[]+::[^\s\[]+)", re.MULTILINE)
_REPEATED = re.compile(r"^RERUN (\S+)", re.MULTILINE)
#: Failed tests of a suite that are repeated. More have a cause that a new process does not remove.
_MOST_REPEATED = 3


@dataclass(frozen=True)
class Chosen:
    """A suite that runs, and its files. None runs all of them."""

    suite: Suite
    files: tuple[str, ...] | None
    reason: str

    @property
    def command(self) -> list[str]:
        """The command that runs it."""
        words = ["make", "--no-print-directory", self.suite.target]
        return words if self.files is None else [*words, f"ONLY={' '.join(self.files)}"]


@dataclass(frozen=True)
class RunningSuite:
    """A suite that runs."""

    chosen: Chosen
    process: subprocess.Popen[bytes]
    log: Path
    begin: float


@dataclass(frozen=True)
class SuiteResult:
    """How a suite ended."""

    target: str
    passed: bool
    seconds: float
    repeated: tuple[str, ...]


def git(*words: str) -> str | None:
    """Return the output of git, or None if it failed."""
    ran = subprocess.run(
        [shutil.which("git") or "git", *words], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return ran.stdout.strip() if ran.returncode == 0 else None


def passed_file() -> Path:
    """Return the file with the last commit that passed on this machine."""
    return tools.shared_cache_directory() / "ci" / "passed-commit"


def known_base() -> str | None:
    """Return the last commit that passed: that of the environment variable BASE, or of this machine."""
    given = os.environ.get("BASE")
    file = passed_file()
    return given or (file.read_text(encoding="utf-8").strip() if file.is_file() else None)


def why_all(base: str | None) -> str | None:
    """Return why every suite must run, or None if the changed files decide."""
    if not base:
        return "no commit is known that passed"
    if git("rev-parse", "--is-shallow-repository") != "false":
        return "the history is not complete"
    if git("merge-base", "--is-ancestor", base, "HEAD") is None:
        return f"{base[:8]} is not an ancestor of this commit"
    common = [name for name in changed_files(base) if COMMON.fullmatch(name)]
    if common:
        return f"{common[0]} changed, on which every suite depends"
    for commit in (git("rev-list", f"{base}..HEAD") or "").split():
        number = int(git("rev-list", "--count", commit) or 0)
        if number % FULL_EVERY == 0:
            return f"{commit[:8]} is commit {number}, which divides by {FULL_EVERY}"
    return None


def changed_files(base: str) -> list[str]:
    """Return the files that differ between a commit and the working tree."""
    return (git("diff", "--name-only", "--no-renames", base) or "").splitlines()


def choose(changed: Sequence[str], graph: dict[str, set[str]], root: Path = ROOT) -> Iterator[Chosen]:
    """Yield the suites of every run, and the others with their files that are near a changed file."""
    concerned = import_graph.files_of_change(changed, graph, root)
    for suite in SUITES:
        if suite.tier == "every run":
            yield Chosen(suite, None, "in every run")
        if suite.tier != "near a change":
            continue
        source = next((name for name in changed if name.startswith(suite.sources or ("\0",))), None)
        if source:
            yield Chosen(suite, None, f"{source} changed")
            continue
        files = tuple(name for name in suite.files(root) if import_graph.near(graph, name) & concerned)
        if files:
            yield Chosen(suite, files, f"{len(files)} files of tests are near a change")


def in_lanes(chosen: Iterable[Chosen], *, at_once: bool) -> list[list[Chosen]]:
    """Return the suites of each lane. Suites without a lane, and all unless some run at once, are in one."""
    found = {each.suite.target: each for each in chosen}
    if at_once:
        return [[found[target] for target in lane if target in found] for lane in LANES]
    return [sorted(found.values(), key=lambda each: each.suite.waits)]


def start(chosen: Chosen, logs: Path) -> RunningSuite:
    """Start a suite. If it does not wait for time to pass, it gives way to those that do."""
    gives_way = not chosen.suite.waits
    command = ["nice", "-n", _NICE, *chosen.command] if gives_way else chosen.command
    log = logs / chosen.suite.target
    say(f"{chosen.suite.target} starts; its output is shown when it ends, and is in {log} until then")
    with log.open("wb") as stream:
        process = subprocess.Popen(
            command, cwd=ROOT, stdout=stream, stderr=subprocess.STDOUT, start_new_session=gives_way
        )
    if gives_way:
        # Where Linux divides the processors among sessions first, the number of the session counts (sched(7),
        # "The autogroup feature"). Where it does not, there is no such file.
        with suppress(OSError):
            Path(f"/proc/{process.pid}/autogroup").write_text(_NICE, encoding="ascii")
    return RunningSuite(chosen, process, log, time.monotonic())


def run_lanes(lanes: Sequence[Sequence[Chosen]], logs: Path) -> Iterator[SuiteResult]:
    """Run the lanes at once, the suites of each one after the other. A suite's end shows its output."""
    waiting = [list(lane) for lane in lanes]
    running: dict[int, RunningSuite] = {}
    begin = shown = time.monotonic()
    while running or any(waiting):
        for number, lane in enumerate(waiting):
            if lane and number not in running:
                running[number] = start(lane.pop(0), logs)
        for number, each in list(running.items()):
            if each.process.poll() is not None:
                yield ended(running.pop(number))
        if running and time.monotonic() - shown > _PROGRESS_SECONDS:
            shown = time.monotonic()
            say(f"{(shown - begin) / 60:5.1f} min  {', '.join(map(progress, running.values()))}")
        time.sleep(_LOOK_SECONDS)


def progress(each: RunningSuite) -> str:
    """Return the name of a suite that runs, and which share of its tests pytest has named last."""
    found = PERCENT.findall(each.log.read_text(encoding="utf-8", errors="replace"))
    return " ".join([each.chosen.suite.target, *(f"{share} %" for share in found[-1:])])


def ended(each: RunningSuite) -> SuiteResult:
    """Show the output of a suite that has ended."""
    name, passed = each.chosen.suite.target, each.process.wait() == 0
    seconds = time.monotonic() - each.begin
    text = each.log.read_text(encoding="utf-8", errors="replace")
    say(f"\n===== {name} {'passed' if passed else 'FAILED'} after {seconds / 60:.1f} min =====\n{text}")
    say(f"{shutil.disk_usage(ROOT).free / 1e9:.1f} GB of disk space are free.")
    return SuiteResult(name, passed, seconds, repeated(text))


def shown(name: str, command: Sequence[str], logs: Path) -> SuiteResult:
    """Run a command, and show and keep its output."""
    say(f"\n===== {name} =====")
    begin = time.monotonic()
    lines = []
    with (logs / name).open("w", encoding="utf-8") as log:
        process = subprocess.Popen(
            command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
        )
        for line in process.stdout or ():
            lines.append(line)
            log.write(line)
            say(line.rstrip("\n"))
    code = process.wait()
    say(f"{shutil.disk_usage(ROOT).free / 1e9:.1f} GB of disk space are free.")
    return SuiteResult(name, code == 0, time.monotonic() - begin, repeated("".join(lines)))


def repeated(text: str) -> tuple[str, ...]:
    """Return the tests that a suite repeated."""
    return tuple(sorted(set(_REPEATED.findall(text))))


def repeat_failed(chosen: Chosen, first: SuiteResult, logs: Path) -> SuiteResult:
    """If few tests of a suite failed that waits for real programs, run these once more, in a new process.

    Fixtures that several tests share start again with it. A repetition in the same process would judge what
    they did before. Nothing else runs beside it.
    """
    target = chosen.suite.target
    failed = sorted(set(_FAILED.findall((logs / target).read_text(encoding="utf-8", errors="replace"))))
    if first.passed or not chosen.suite.waits or not 0 < len(failed) <= _MOST_REPEATED:
        return first
    say(f"{len(failed)} tests of {target} failed and are repeated once.")
    again = shown(target, replace(chosen, files=tuple(failed)).command, logs)
    seconds = first.seconds + again.seconds
    return SuiteResult(target, again.passed, seconds, (*first.repeated, *failed))


def processes_left(mark: str) -> list[psutil.Process]:
    """Return the processes that name this checkout, or whose environment has the folder of this run."""
    left = []
    own = {os.getpid(), *(each.pid for each in psutil.Process().parents())}
    for process in psutil.process_iter():
        try:
            texts = [*process.cmdline(), *process.environ().values()]
            names_checkout = any(f"{ROOT}/" in word for word in process.cmdline())
        except psutil.Error:  # it has ended, or is the kernel's
            continue
        if process.pid not in own and (names_checkout or any(mark in each for each in texts)):
            left.append(process)
    _, alive = psutil.wait_procs(left, timeout=_ENDING_SECONDS)
    return alive


def summary(results: Sequence[SuiteResult], seconds: float) -> Iterator[str]:
    """Yield a line per suite, how long all took together, and the tests that were repeated."""
    yield "\n===== summary ====="
    for each in results:
        yield f"{each.target:16} {'passed' if each.passed else 'FAILED'}  {each.seconds / 60:5.1f} min"
    yield f"{'together':16}         {seconds / 60:5.1f} min"
    for each in results:
        for name in each.repeated:
            yield f"repeated: {name} ({each.target}); run: make deflake N=20 ONLY={name.partition('[')[0]}"


def record(results: Sequence[SuiteResult], whole: Container[str]) -> None:
    """Write how suites ended that ran whole, with date and commit. Those of other suites stay."""
    known = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.is_file() else {}
    changed = " with changes" if git("status", "--porcelain", "--", ".", f":!{RESULTS.name}") else ""
    for each in results:
        if each.target in whole:
            known[each.target] = {
                "passed": each.passed,
                "minutes": round(each.seconds / 60, 1),
                "repeated": list(each.repeated),
                "date": datetime.now(UTC).date().isoformat(),
                "commit": f"{git('rev-parse', '--short=8', 'HEAD')}{changed}",
            }
    RESULTS.write_text(json.dumps(known, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def plan(arguments: argparse.Namespace) -> tuple[str, list[Chosen]]:
    """Return why these suites run, and the suites."""
    if arguments.suites or arguments.release:
        named = arguments.suites or [suite.target for suite in SUITES]
        return "Asked for:", [Chosen(suite, None, "whole") for suite in SUITES if suite.target in named]
    base = known_base()
    reason = "asked for" if arguments.all else why_all(base)
    if reason or not base:
        whole = [Chosen(suite, None, "whole") for suite in SUITES if suite.tier != "release"]
        return f"Everything runs except the suites of a release: {reason}.", whole
    changed = changed_files(base)
    chosen = list(choose(changed, import_graph.imports(ROOT)))
    return f"Compared with {base[:8]}, {len(changed)} files changed.", chosen


def run(chosen: Sequence[Chosen], *, at_once: bool) -> tuple[list[SuiteResult], list[psutil.Process]]:
    """Build programs, run every suite even if one fails, and return the processes that are left."""
    with tempfile.TemporaryDirectory(prefix="ci-", ignore_cleanup_errors=True) as folder:
        os.environ["TMPDIR"] = folder  # every started process has it in its environment
        logs = Path(folder) / "logs"
        logs.mkdir()
        programs = sorted({each.suite.programs for each in chosen if each.suite.programs})
        results = [shown(words, ["make", "--no-print-directory", *words.split()], logs) for words in programs]
        suites = {each.suite.target: each for each in chosen}
        first = list(run_lanes(in_lanes(chosen, at_once=at_once), logs))
        results += [repeat_failed(suites[each.target], each, logs) for each in first]
        return results, processes_left(folder)


def main() -> int:
    """Run the suites, say what they cost, and record the commit if all passed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("suites", nargs="*", metavar="SUITE", help="run these suites whole, and no others")
    parser.add_argument("--all", action="store_true", help="run every suite except those of a release")
    parser.add_argument("--release", action="store_true", help="run every suite")
    parser.add_argument("--record", action="store_true", help=f"write the results into {RESULTS.name}")
    parser.add_argument("--dry-run", action="store_true", help="only say what would run")
    given = parser.parse_args()
    unknown = set(given.suites) - {suite.target for suite in SUITES}
    if unknown:
        allowed = ", ".join(suite.target for suite in SUITES)
        parser.error(f"got {', '.join(sorted(unknown))}; the suites are {allowed}")
    why, chosen = plan(given)
    say(why)
    for each in chosen:
        say(f"  {each.suite.target}: {each.reason}")
    if given.dry_run:
        return 0
    end_with_children()
    begin = time.monotonic()
    # Not at once if times are recorded, and not before a release: some of its suites need a quiet machine.
    results, left = run(chosen, at_once=not (given.suites or given.release or given.record))
    for line in summary(results, time.monotonic() - begin):
        say(line)
    if given.record:
        record(results, {each.suite.target for each in chosen if each.files is None})
    for process in left:
        say(f"left: {process.pid} {' '.join(process.cmdline())}")
    if left or not all(each.passed for each in results):
        return 1
    say("No process is left.")
    if git("status", "--porcelain") == "" and not given.suites:
        passed_file().parent.mkdir(parents=True, exist_ok=True)
        passed_file().write_text(f"{git('rev-parse', 'HEAD')}\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
