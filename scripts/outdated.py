"""Report the age of every pinned version, the newest release, and why the pin stands where it stands.

    .venv/bin/python scripts/outdated.py

``make outdated`` runs this script. It asks the registries that this machine reaches, and says of the others
that they did not answer. Then it lists the benchmarks whose code is not the measured one any more, with what
changed. It changes nothing and ends with 0.
"""

from __future__ import annotations

import itertools
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime
from functools import partial

import pin_list
import registry_answers
from advisories import open_table
from packaging.version import Version as PythonVersion
from pin_list import VersionPin
from registry_answers import Release, UnansweredError

import benchmarks
from benchmarks.harness.recorded_results import BenchmarkModule, Results, discover
from inference_blueprints.report.tables import TextTable, print_table, table_console
from inference_blueprints.resources import root
from inference_catalog.releases import version_order

_UNASKED = "no package registry knows"
_UNANSWERED = "cannot be asked from here"
_UNKNOWN = "unknown"
_NAMED_FILES = 5
_NEWEST = "it is the newest"
_NO_REASON = "no reason is recorded: move the pin, or record one"

#: The pinned and the newest release of a pin; None where the registry did not answer.
Answers = Mapping[VersionPin, tuple[Release | None, Release | None]]


def main() -> int:
    """Print a table per kind of pin."""
    pins = pin_list.pins()
    answers, problems = ask(pins)
    console = table_console()
    for table in tables(pins, answers, datetime.now(UTC).date()):
        print_table(table, console)
    for registry, messages in problems.items():
        line = f"{len(messages)} without an answer ({registry}), such as {messages[0]}"
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    results = Results.read(root() / "benchmarks" / "results.json")
    print_table(benchmark_table(results, discover(benchmarks), _changed_since), console)
    print_table(open_table(datetime.now(UTC).date()), console)
    return 0


def benchmark_table(
    results: Results,
    found: Mapping[str, BenchmarkModule],
    changed_since: Callable[[str, Sequence[str]], Sequence[str] | None],
) -> TextTable:
    """Return the benchmarks that measured other code than today's.

    found: All benchmarks, by name.
    changed_since: Returns which files changed since a commit; None if the commit is not known here.
    """
    rows = []
    for name, benchmark in sorted(found.items()):
        run = results.runs.get(name, {})
        if run.get("code") == benchmark.code():
            continue
        files = benchmark.files()
        commit = run.get("commit", "")
        changed = changed_since(commit.partition(" ")[0], files) if commit else files
        if changed is None:
            what, count = "its commit is not known here", _UNKNOWN
        else:
            more = ["..."] if len(changed) > _NAMED_FILES else []
            what, count = ", ".join([*changed[:_NAMED_FILES], *more]), str(len(changed))
        rows.append((name, f"{run.get('date', 'never')} {commit}".strip(), what, f"{count} of {len(files)}"))
    headings = ("Benchmark", "Measured", "What changed since")
    return TextTable("Benchmarks whose code changed", headings, ("Files",), tuple(rows))


def _changed_since(commit: str, files: Sequence[str]) -> Sequence[str] | None:
    """Return which of some files differ from a commit; None if git does not know it, or is not there."""
    if not shutil.which("git"):
        return None
    command = ["git", "diff", "--name-only", commit, "--", *files]
    ran = subprocess.run(command, cwd=root(), capture_output=True, text=True, check=False)
    return None if ran.returncode else ran.stdout.split()


def ask(pins: Sequence[VersionPin]) -> tuple[Answers, Mapping[str, Sequence[str]]]:
    """Ask every registry.

    Returns: The answers, and by registry what tools reported instead of an answer.
    """
    questions: list[tuple[str, str, Callable[[], Answers]]] = [
        (pin.registry, pin.address, partial(_QUESTIONS[pin.registry], pin))
        for pin in pins
        if pin.registry in _QUESTIONS
    ]
    for registry, name, question in (("go", "modules", _go), ("maven", "libraries", _maven)):
        # These answer for all parts at once.
        asked_of = [pin for pin in pins if pin.registry == registry]
        questions.append((registry, name, partial(question, asked_of)))
    answers: dict[VersionPin, tuple[Release | None, Release | None]] = {}
    problems: dict[str, list[str]] = {}
    with ThreadPoolExecutor(max_workers=8) as pool:
        asked = [(registry, address, pool.submit(question)) for registry, address, question in questions]
        for registry, address, answer in asked:
            try:
                answers |= answer.result()
            except UnansweredError as error:
                problems.setdefault(registry, []).append(f"{address}: {error}")
    return answers, problems


def tables(pins: Sequence[VersionPin], answers: Answers, today: date) -> list[TextTable]:
    """Return a table per kind of pin.

    pins: The pins, ordered by kind.
    answers: What the registries answered.
    today: Date from which ages count.
    """
    headings = ("Part", "Version", "Newest", "Why it stands there")
    return [
        TextTable(
            group, headings, ("Released", "Age, days"), tuple(_row(pin, answers, today) for pin in members)
        )
        for group, members in itertools.groupby(pins, key=lambda pin: pin.group)
    ]


def _row(pin: VersionPin, answers: Answers, today: date) -> tuple[str, ...]:
    current, newest = answers.get(pin, (None, None))
    released = (current.released if current else None) or pin.released
    age = str((today - date.fromisoformat(released)).days) if released else _UNKNOWN
    if newest is None:
        shown, reason = _UNANSWERED if pin.registry else _UNASKED, ""
    else:
        shown = newest.version
        reason = _NEWEST if _is_newest(pin, newest.version) else _NO_REASON
    return (pin.name, pin.version, shown, pin.reason or reason, released or _UNKNOWN, age)


def _is_newest(pin: VersionPin, newest: str) -> bool:
    """Return whether no release is newer. A pin may be newer than the newest final release."""
    if pin.registry == "python":
        return PythonVersion(pin.version) >= PythonVersion(newest)
    return version_order(_tag(pin.version)) >= version_order(newest)


def _chart(pin: VersionPin) -> Answers:
    return {pin: (None, registry_answers.chart_release(pin.address, pin.name))}


def _python(pin: VersionPin) -> Answers:
    newest = registry_answers.python_release(pin.address)
    return {pin: (registry_answers.python_release(f"{pin.address}=={pin.version}"), newest)}


def _node(pin: VersionPin) -> Answers:
    return {pin: registry_answers.node_release(pin.address, pin.version)}


def _go(pins: Sequence[VersionPin]) -> Answers:
    asked = {f"{pin.address}@{wanted}" for pin in pins for wanted in (_tag(pin.version), "latest")}
    found = registry_answers.go_releases(sorted(asked))
    return {
        pin: (found.get(f"{pin.address}@{_tag(pin.version)}"), found.get(f"{pin.address}@latest"))
        for pin in pins
    }


def _maven(pins: Sequence[VersionPin]) -> Answers:
    if not pins:
        return {}
    found = registry_answers.maven_releases()
    newest = {pin: found.get(pin.address) for pin in pins}
    # Maven says nothing of a plugin that is the newest.
    return {
        pin: (None, release or (Release(pin.version) if pin.name.endswith("-plugin") else None))
        for pin, release in newest.items()
    }


def _tag(version: str) -> str:
    """Return the version in an image's tag, such as ``distroless-v1.40.0``, as a Go module has it."""
    return re.sub(r"^[a-z]+-", "", version)


#: Registries that answer for one part at a time.
_QUESTIONS: Mapping[str, Callable[[VersionPin], Answers]] = {
    "chart": _chart,
    "python": _python,
    "node": _node,
}


if __name__ == "__main__":
    raise SystemExit(main())
