"""Write the results of `make test-ecs` into docs/ecs.md, from the report of pytest.

``make test-ecs`` runs this script after the tests: ``write_ecs_results.py REPORT``, a file in the format of
``pytest --junitxml``.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Final
from xml.etree import ElementTree

PAGE: Final = Path(__file__).resolve().parent.parent / "docs" / "ecs.md"
_TESTS: Final = PAGE.parent.parent / "tests" / "local" / "conformance"
_CASE: Final = re.compile(r"test_(?:elastic_|batch_)?case\[(eks|ecs)-(\w+)\]")
_CASE_FILES: Final = ("cases.py", "elastic_cases.py", "batch_cases.py")
_PLACE: Final = "(<!-- {0} -->\n).*?(<!-- end of {0} -->)"


def main(report: Path) -> None:
    """Write both tables.

    Raises
    ------
    SystemExit
        If a case was not run on both platforms: the page shows whole runs only.
    """
    results = dict(_results(report))
    cases: dict[str, dict[str, str]] = {}
    for name, result in results.items():
        if found := _CASE.fullmatch(name):
            cases.setdefault(found[2], {})[found[1]] = result
    faults = {name: result for name, result in results.items() if name in fault_names()}
    if missing := [name for name in case_names() if cases.get(name, {}).keys() != {"eks", "ecs"}]:
        raise SystemExit(f"not run on both platforms: {', '.join(missing)}; the page stays as it is")
    if faults.keys() != set(fault_names()):
        raise SystemExit("not every fault was run; the page stays as it is")
    page = _with_table(PAGE.read_text(encoding="utf-8"), "cases", _case_table(cases))
    PAGE.write_text(_with_table(page, "faults", _fault_table(faults)), encoding="utf-8")


def fault_names() -> list[str]:
    """Return the names of the tests of faults, in their order."""
    text = (_TESTS / "test_rendered_faults.py").read_text(encoding="utf-8")
    return re.findall(r"^def (test_\w+)\(", text, re.MULTILINE)


def case_names() -> list[str]:
    """Return the names of the cases that both platforms run, in their order."""
    texts = ((_TESTS / name).read_text(encoding="utf-8") for name in _CASE_FILES)
    lists = (text.partition("\nCASES: ")[2].partition(" = (")[2].partition(")")[0] for text in texts)
    return [name for each in lists for name in re.findall(r"\w+", each)]


def in_words(name: str) -> str:
    """Return the name of a case or a test as a sentence without a full stop."""
    return name.removeprefix("test_").replace("_", " ")


def _results(report: Path) -> Iterator[tuple[str, str]]:
    """Yield the name and the result of each test, with its duration."""
    for case in ElementTree.parse(report).getroot().iter("testcase"):  # noqa: S314 - our own file
        failed = case.find("failure") is not None or case.find("error") is not None
        skipped = case.find("skipped") is not None
        state = "failed" if failed else "not run" if skipped else "passed"
        yield case.attrib["name"], f"{state}, {float(case.attrib['time']):.0f} s"


def _case_table(cases: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    today = f"{datetime.now(UTC):%Y-%m-%d}"
    yield f"Run on {today} with simulated engines, on two processors that did other work too."
    yield "The times of the first case and of the last two contain the start of a platform."
    yield ""
    yield "| Case | EKS | ECS |"
    yield "|---|---|---|"
    for name in case_names():
        yield f"| {in_words(name)} | {cases[name]['eks']} | {cases[name]['ecs']} |"


def _fault_table(faults: Mapping[str, str]) -> Iterator[str]:
    yield "| Fault | Result |"
    yield "|---|---|"
    for name, result in faults.items():
        yield f"| {in_words(name)} | {result} |"


def _with_table(page: str, name: str, lines: Iterator[str]) -> str:
    place = re.compile(_PLACE.format(name), re.DOTALL)
    found = place.search(page)
    if found is None:
        raise SystemExit(f"the page has no place for the table '{name}'")
    table = "\n".join(lines)
    return f"{page[: found.start()]}{found[1]}\n{table}\n\n{found[2]}{page[found.end() :]}"


if __name__ == "__main__":
    main(Path(sys.argv[1]))
