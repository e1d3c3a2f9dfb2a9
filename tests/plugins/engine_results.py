"""Tests on real engines: their marker, and the section "Last result" of docs/real-engines.md.

``--engine-results FOLDER`` writes ``tests/engines/results.json`` there, and from it the section of
the page. A run of some tests keeps the results of the others. With ``--collect-only``, it lists each case
that has no result as not run, and removes results of cases that do not exist any more.
"""

from __future__ import annotations

import inspect
import json
import math
import os
import subprocess
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil
import pytest

from inference_local.serving.vllm_cpu.installation import VLLM

FOLDER = "tests/engines"
RESULTS = Path(FOLDER) / "results.json"
PAGE = Path("docs") / "real-engines.md"
BEGIN = "<!-- result: written by make test-engines -->"
END = "<!-- end of result -->"
# A case that was interrupted in its setup; it is not written.
_NOT_ENDED = "not ended"
NOT_RUN = "not run yet"
_OUTCOMES = ("passed", "failed", "skipped", "expected to fail", NOT_RUN)
_NAMES = {"vllm": "vLLM", "ai-dynamo": "Dynamo", "nixl": "NIXL", "torch": "torch"}


@dataclass
class EngineCase:
    """The last result of a case."""

    outcome: str
    date: str
    commit: str | None
    """The commit of this library that ran. None if none was recorded."""
    wall_seconds: float | None
    processor_seconds: float | None
    """`wall_seconds`, `processor_seconds`: Its cost. The first case that uses engines pays for their start.
    None if none was recorded."""


@dataclass
class EngineTest:
    """The last results of a test function."""

    shows: str
    """The first paragraph of its docstring, or the words of its name."""
    where: str
    """Versions of the engine's packages, and the machine."""
    cases: dict[str, EngineCase] = field(default_factory=dict)
    """Its cases by their parameters; a function without parameters has one, without a name."""

    @property
    def dates(self) -> list[str]:
        """The days on which its cases ran."""
        return sorted({case.date for case in self.cases.values() if case.date})


Results = dict[str, EngineTest]


def read(root: Path) -> Results:
    path = root / RESULTS
    found = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return {
        name: EngineTest(
            values["shows"],
            values["where"],
            {case: EngineCase(**each) for case, each in values["cases"].items()},
        )
        for name, values in found.items()
    }


def merged(earlier: Results, new: Results, whole: Iterable[str], root: Path) -> Results:
    """Return all results. A test that ran with all its cases replaces its earlier result."""
    kept = {name: test for name, test in earlier.items() if _exists(name, root)}
    for name, test in new.items():
        if name in kept and name not in whole:
            test.cases = {**kept[name].cases, **test.cases}
        kept[name] = test
    return dict(sorted(kept.items()))


def listed(results: Results, collected: Mapping[str, tuple[str, list[str]]]) -> Results:
    """Return the results of the cases that exist. Those without a result are listed as not run.

    collected: What each test shows, and its cases.
    """
    found: Results = {}
    for name, (shown, cases) in sorted(collected.items()):
        known = results.get(name, EngineTest(shown, ""))
        new = EngineCase(NOT_RUN, "", None, None, None)
        found[name] = EngineTest(
            known.shows, known.where, {case: known.cases.get(case, new) for case in cases}
        )
    return found


def _exists(name: str, root: Path) -> bool:
    file, _, function = name.partition("::")
    path = root / FOLDER / file
    # A class of tests may inherit them from another file of its folder.
    sources = path.parent.glob("*.py") if "::" in function else [path]
    line = f"def {function.rpartition('::')[2]}("
    return path.is_file() and any(line in each.read_text(encoding="utf-8") for each in sources)


def write(root: Path, results: Results) -> None:
    text = json.dumps({name: asdict(test) for name, test in results.items()}, indent=2)
    (root / RESULTS).write_text(text + "\n", encoding="utf-8")
    page = root / PAGE
    page.write_text(with_section(page.read_text(encoding="utf-8"), results), encoding="utf-8")


def with_section(page: str, results: Results) -> str:
    """Return the page with the results between its two markers."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise pytest.UsageError(f"{PAGE}: the lines {BEGIN} and {END} are missing; restore them")
    return f"{before}{begin}\n\n{section(results)}\n{end}{after}"


def section(results: Results) -> str:
    if not results:
        return "The tests have not run yet.\n"
    every = [case for test in results.values() for case in test.cases.values()]
    counts = Counter(case.outcome.partition(":")[0] for case in every)
    outcomes = ", ".join(f"{counts[name]} {name}" for name in _OUTCOMES if counts[name])
    wall = math.ceil(sum(case.wall_seconds or 0.0 for case in every) / 60)
    processor = math.ceil(sum(case.processor_seconds or 0.0 for case in every) / 60)
    unknown = sum(case.wall_seconds is None and case.outcome != NOT_RUN for case in every)
    cost = f"Cost: {wall} min, {processor} min of processor time"
    lines = [
        f"{len(every)} cases of {len(results)} tests: {outcomes}. {cost}"
        f"{f', without {unknown} cases whose cost was not recorded' if unknown else ''}.",
        "",
    ]
    for where in sorted({test.where for test in results.values() if test.where}):
        dates = sorted({date for test in results.values() if test.where == where for date in test.dates})
        span = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
        lines.append(f"- {span}: {where}")
    lines += ["", "| What it shows | Test | Result | Cost | Date and commit |", "|---|---|---|---|---|"]
    for name, test in results.items():
        cells = (
            test.shows,
            f"`{name.partition('::')[0]}`",
            _result({case: each.outcome for case, each in test.cases.items()}),
            _cost(test),
            "; ".join(sorted({_when(case) for case in test.cases.values() if case.date})),
        )
        lines.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    return "\n".join([*lines, ""])


def _cost(test: EngineTest) -> str:
    seconds = [case.wall_seconds for case in test.cases.values() if case.outcome != NOT_RUN]
    if not seconds:
        return ""
    known = [each for each in seconds if each is not None]
    return f"{math.ceil(sum(known))} s" if len(known) == len(seconds) else "not recorded"


def _when(case: EngineCase) -> str:
    return f"{case.date}, `{case.commit}`" if case.commit else case.date


def _result(cases: Mapping[str, str]) -> str:
    """Return the outcome of a test's cases: each that did not pass, with its parameters and reason."""
    if set(cases.values()) in ({"passed"}, {NOT_RUN}):
        [outcome] = set(cases.values())
        return outcome if len(cases) == 1 else f"{len(cases)} cases {outcome}"
    others = {case: outcome for case, outcome in cases.items() if outcome != "passed"}
    told = [f"{case} {outcome}".strip() for case, outcome in others.items()]
    passed = len(cases) - len(others)
    return "; ".join([*told, *([f"{passed} passed"] if passed else [])])


def environment() -> str:
    """Describe the engine's packages and this machine."""
    marker = VLLM.folder / "installed.json"
    versions = json.loads(marker.read_text(encoding="utf-8")) if VLLM.is_complete else {}
    packages = [f"{name} {versions.get(package, 'not installed')}" for package, name in _NAMES.items()]
    memory = psutil.virtual_memory().total / 2**30
    return f"{', '.join(packages)}; {os.cpu_count()} cores, {memory:.0f} GiB of memory"


def commit(root: Path) -> str | None:
    """Return the commit of a folder, and whether files other than the results differ from it."""
    if not (root / ".git").exists():
        return None
    changed = _git(root, "status", "--porcelain", "--", ".", f":!{RESULTS}", f":!{PAGE}")
    return _git(root, "rev-parse", "--short=8", "HEAD") + (" with changes" if changed else "")


def _git(root: Path, *words: str) -> str:
    ran = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=True)
    return ran.stdout.strip()


def shows(item: pytest.Function) -> str:
    """Return the first paragraph of the test's docstring, or the words of its name."""
    paragraph = (inspect.getdoc(item.function) or "").partition("\n\n")[0]
    words = function_name(item).rpartition("::")[2].removeprefix("test_").replace("_", " ")
    return " ".join(paragraph.split()) or f"{words[:1].upper()}{words[1:]}."


class EngineResults:
    """Collects outcomes of a run and writes them at its end.

    root: Folder of the page.
    cost: Returns the processor time of a report.
    only_list: Whether no test runs.
    """

    def __init__(
        self, root: Path, cost: Callable[[pytest.TestReport], float], *, only_list: bool = False
    ) -> None:
        self._only_list = only_list
        self._root = root
        self._cost = cost
        self._new: Results = {}
        self._items: dict[str, pytest.Function] = {}
        self._part: set[str] = set()
        self._commit = commit(root)

    def pytest_deselected(self, items: list[pytest.Item]) -> None:
        self._part |= {function_name(item) for item in items if isinstance(item, pytest.Function)}

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        items = [item for item in session.items if isinstance(item, pytest.Function)]
        self._items = {item.nodeid: item for item in items if is_engine_test(item)}
        chosen = [argument for argument in session.config.args if "[" in argument]
        self._part |= {function_name(item) for item in self._items.values() if chosen}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        item = self._items.get(report.nodeid)
        if item is None:
            return
        test = self._new.setdefault(function_name(item), EngineTest(shows(item), ""))
        key = _case_name(item)
        if key not in test.cases:
            test.cases[key] = EngineCase(
                _NOT_ENDED, datetime.now(UTC).date().isoformat(), self._commit, 0.0, 0.0
            )
        case = test.cases[key]
        case.wall_seconds = round((case.wall_seconds or 0.0) + report.duration, 1)
        case.processor_seconds = round((case.processor_seconds or 0.0) + self._cost(report), 1)
        if report.when == "call" or report.outcome != "passed":
            case.outcome = _outcome(report)

    def _collected(self) -> dict[str, tuple[str, list[str]]]:
        found: dict[str, tuple[str, list[str]]] = {}
        for item in self._items.values():
            found.setdefault(function_name(item), (shows(item), []))[1].append(_case_name(item))
        return found

    def pytest_sessionfinish(self) -> None:
        if self._only_list:
            write(self._root, listed(read(self._root), self._collected()))
            return
        for test in self._new.values():
            test.cases = {key: case for key, case in test.cases.items() if case.outcome != _NOT_ENDED}
        finished = {name: test for name, test in self._new.items() if test.cases}
        if not finished:
            return
        where = environment()
        for test in finished.values():
            test.where = where
        whole = finished.keys() - self._part
        write(self._root, merged(read(self._root), finished, whole, self._root))


def _case_name(item: pytest.Function) -> str:
    return str(item.callspec.id) if hasattr(item, "callspec") else ""


def _outcome(report: pytest.TestReport) -> str:
    reason = getattr(report, "wasxfail", None)
    if reason is not None:
        # A strict expectation that is not met is reported as failed.
        return f"expected to fail: {reason.removeprefix('reason: ')}" if report.skipped else "passed"
    if report.skipped and isinstance(report.longrepr, tuple):
        return f"skipped: {report.longrepr[2].removeprefix('Skipped: ')}"
    return str(report.outcome)


def is_engine_test(item: pytest.Item) -> bool:
    return item.nodeid.startswith(f"{FOLDER}/")


def function_name(item: pytest.Function) -> str:
    """Return the test's name below the folder, without parameters."""
    return item.nodeid.removeprefix(f"{FOLDER}/").partition("[")[0]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--engine-results",
        type=Path,
        metavar="FOLDER",
        help="write the results of tests/engines into the page docs/real-engines.md below this folder",
    )


def pytest_configure(config: pytest.Config) -> None:
    folder: Path | None = config.getoption("engine_results")
    if folder is not None and not hasattr(config, "workerinput"):
        only_list = config.option.collectonly
        if only_list and [Path(each) for each in config.args] != [Path(FOLDER)]:
            raise pytest.UsageError(
                f"--engine-results with --collect-only lists all of {FOLDER}; name it alone"
            )
        config.pluginmanager.register(EngineResults(folder, _processor_seconds, only_list=only_list))


def _processor_seconds(report: Any) -> float:
    # tests/plugins/cost.py measures it.
    return float(getattr(report, "processor_seconds", 0.0))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests before pytest selects by markers, so that none runs by mistake."""
    for item in items:
        if is_engine_test(item):
            item.add_marker("engines")
