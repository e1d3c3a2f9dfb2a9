"""Write the results of `make test-ecs` into docs/ecs.md, from the report of pytest.

``make test-ecs`` runs this script after the tests: ``record_ecs_results.py REPORT``, a file in the format of
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
_CASE: Final = re.compile(r"test_(?P<kind>[a-z]*?)_?case\[(?P<target>eks|ecs)-(?P<name>\w+)\]")
#: The table of each kind of cases, and the file that lists them.
TABLES: Final = {
    "cases": {
        "": "cases",
        "elastic": "elastic_cases",
        "batch": "batch_cases",
        "controlled": "controlled_cases",
    },
    "disaggregated": {"disaggregated": "cases"},
}
#: Tests of faults, and the others that run on ECS only.
_FAULT_FILES: Final = ("test_rendered_faults.py", "test_disaggregated.py", "test_servers.py")
_PLACE: Final = "(<!-- {0} -->\n).*?(<!-- end of {0} -->)"


def main(report: Path) -> None:
    """Write all tables.

    Raises SystemExit if a case was not run on both platforms: the page shows whole runs only.
    """
    results = dict(_results(report))
    cases: dict[tuple[str, str], dict[str, str]] = {}
    for name, result in results.items():
        if found := _CASE.fullmatch(name):
            cases.setdefault((found["kind"], found["name"]), {})[found["target"]] = result
    faults = {name: result for name, result in results.items() if name in fault_names()}
    every = [each for table in TABLES for each in case_names(table)]
    if missing := [" ".join(each) for each in every if cases.get(each, {}).keys() != {"eks", "ecs"}]:
        raise SystemExit(f"not run on both platforms: {', '.join(missing)}; the page stays as it is")
    if faults.keys() != set(fault_names()):
        raise SystemExit("not every fault was run; the page stays as it is")
    page = PAGE.read_text(encoding="utf-8")
    for table in TABLES:
        page = _with_table(page, table, _case_table({each: cases[each] for each in case_names(table)}))
    PAGE.write_text(_with_table(page, "faults", _fault_table(faults)), encoding="utf-8")


def fault_names() -> list[str]:
    """Return the names of the tests that run on ECS only, in their order."""
    texts = ((_TESTS / name).read_text(encoding="utf-8") for name in _FAULT_FILES)
    names = [name for text in texts for name in re.findall(r"^def (test_\w+)\(", text, re.MULTILINE)]
    return [name for name in names if not name.endswith("_case")]


def case_names(table: str) -> list[tuple[str, str]]:
    """Return kind and name of the cases of a table, which both platforms run, in their order."""
    found = []
    for kind, file in TABLES[table].items():
        text = (_TESTS / f"{file}.py").read_text(encoding="utf-8")
        listed = text.partition("\nCASES: ")[2].partition(" = (")[2].partition(")")[0]
        found += [(kind, name) for name in re.findall(r"\w+", listed)]
    return found


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


def _case_table(cases: Mapping[tuple[str, str], Mapping[str, str]]) -> Iterator[str]:
    today = f"{datetime.now(UTC):%Y-%m-%d}"
    yield f"Run on {today} with simulated engines, on two processors that did other work too."
    yield "The times of the first case of each kind contain the start of a platform."
    yield ""
    yield "| Case | EKS | ECS |"
    yield "|---|---|---|"
    for (_, name), each in cases.items():
        yield f"| {in_words(name)} | {each['eks']} | {each['ecs']} |"


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
