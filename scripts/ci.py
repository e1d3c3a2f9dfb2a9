"""Continuous integration: the suites of what a change touches, or all that fit; then no process may be left.

``.ci/run`` starts it. A run compares with the last commit for which it passed on this machine. Every suite
except those of a release runs in three cases: that commit is unknown or not an ancestor, a file changed on
which all suites depend, or the range holds a commit whose number in the history divides by five. Otherwise
those run that belong to every run, and those tests of the others that are near a change (`import_graph`).
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
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import import_graph
import psutil
from children import end_with_children
from suites import RESULTS, SUITES, Suite

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
        files = self.files
        if files is None and self.suite.mark == "clock":
            # All of its tests are in these (tests/plugins/tiers.py), and 15,000 others need not be collected.
            files = tuple(self.suite.files(ROOT))
        return words if files is None else [*words, f"ONLY={' '.join(files)}"]


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


def in_order(chosen: Iterable[Chosen]) -> Iterator[list[Chosen]]:
    """Yield the suites that run at once: lint beside verify, then one after the other, waiting ones last."""
    found = list(chosen)
    first = [each for each in found if each.suite.target in {"lint", "verify"}]
    others = [each for each in found if each not in first]
    if first:
        yield first
    for each in sorted(others, key=lambda each: each.suite.waits):
        yield [each]


def run_group(group: Sequence[Chosen], logs: Path) -> list[SuiteResult]:
    """Run suites at once. Show the output of the first while it runs, and of the others after it."""
    begin = time.monotonic()
    beside = []
    for each in group[1:]:
        stream = (logs / each.suite.target).open("wb")
        beside.append(
            (each, subprocess.Popen(each.command, cwd=ROOT, stdout=stream, stderr=subprocess.STDOUT))
        )
    results = [run_and_repeat(group[0], logs)]
    for each, process in beside:
        code = process.wait()
        text = (logs / each.suite.target).read_text(encoding="utf-8", errors="replace")
        say(f"\n===== {each.suite.target} =====\n{text}")
        results.append(SuiteResult(each.suite.target, code == 0, time.monotonic() - begin, repeated(text)))
    return results


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


def run_and_repeat(chosen: Chosen, logs: Path) -> SuiteResult:
    """Run a suite. If few tests failed that wait for real programs, run these once more, in a new process.

    Fixtures that several tests share start again with it. A repetition in the same process would judge what
    they did before.
    """
    target = chosen.suite.target
    first = shown(target, chosen.command, logs)
    failed = sorted(set(_FAILED.findall((logs / target).read_text(encoding="utf-8"))))
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


def summary(results: Sequence[SuiteResult]) -> Iterator[str]:
    """Yield a line per suite, and the tests that were repeated."""
    yield "\n===== summary ====="
    for each in results:
        yield f"{each.target:16} {'passed' if each.passed else 'FAILED'}  {each.seconds / 60:5.1f} min"
    yield f"{'sum':16}         {sum(each.seconds for each in results) / 60:5.1f} min"
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


def run(chosen: Sequence[Chosen]) -> tuple[list[SuiteResult], list[psutil.Process]]:
    """Build programs, run every suite even if one fails, and return the processes that are left."""
    with tempfile.TemporaryDirectory(prefix="ci-", ignore_cleanup_errors=True) as folder:
        os.environ["TMPDIR"] = folder  # every started process has it in its environment
        logs = Path(folder) / "logs"
        logs.mkdir()
        programs = sorted({each.suite.programs for each in chosen if each.suite.programs})
        results = [shown(words, ["make", "--no-print-directory", *words.split()], logs) for words in programs]
        for group in in_order(chosen):
            results += run_group(group, logs)
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
    results, left = run(chosen)
    for line in summary(results):
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
