"""Write the results of `make test-llama` into docs/graviton.md, from the report of pytest.

``make test-llama`` runs this script after the tests: ``record_llama_results.py REPORT``, a file in the format
of ``pytest --junitxml``.
"""

from __future__ import annotations

import os
import platform
import re
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final
from xml.etree import ElementTree

from inference_local.serving.llama_cpp.server_build import BUILD

PAGE: Final = Path(__file__).resolve().parent.parent / "docs" / "graviton.md"
_TESTS: Final = PAGE.parent.parent / "tests" / "llama"
_PLACE: Final = re.compile(r"(<!-- results -->\n).*?(<!-- end of results -->)", re.DOTALL)


def main(report: Path) -> None:
    """Write the table. Raises SystemExit if a test was not run: the page shows whole runs only."""
    results = list(_results(report))
    ran = {name.partition("[")[0] for name, _ in results}
    if missing := [name for name in test_names() if name not in ran]:
        raise SystemExit(f"not run: {', '.join(missing)}; the page stays as it is")
    lines = [
        f"Run on {datetime.now(UTC):%Y-%m-%d} with llama.cpp {BUILD} on {os.cpu_count()} processors "
        f"({platform.machine()}) that did other work too.",
        "",
        "| Test | Result |",
        "|---|---|",
        *(f"| {in_words(name)} | {result} |" for name, result in results),
    ]
    page = PAGE.read_text(encoding="utf-8")
    found = _PLACE.search(page)
    if found is None:
        raise SystemExit(f"{PAGE}: has no place for the results")
    table = "\n".join(lines)
    text = f"{page[: found.start()]}{found[1]}\n{table}\n\n{found[2]}{page[found.end() :]}"
    PAGE.write_text(text, encoding="utf-8")


def test_names() -> list[str]:
    """Return the names of the tests, in their order."""
    texts = (path.read_text(encoding="utf-8") for path in sorted(_TESTS.glob("test_*.py")))
    return [name for text in texts for name in re.findall(r"^def (test_\w+)\(", text, re.MULTILINE)]


def in_words(name: str) -> str:
    """Return the name of a test as a sentence without a full stop, with its case."""
    test, _, case = name.removeprefix("test_").partition("[")
    return test.replace("_", " ") + (f" ({case.removesuffix(']')})" if case else "")


def _results(report: Path) -> Iterator[tuple[str, str]]:
    """Yield the name and the result of each test, with its duration."""
    for case in ElementTree.parse(report).getroot().iter("testcase"):  # noqa: S314 - our own file
        failed = case.find("failure") is not None or case.find("error") is not None
        skipped = case.find("skipped") is not None
        state = "failed" if failed else "not run" if skipped else "passed"
        yield case.attrib["name"], f"{state}, {float(case.attrib['time']):.0f} s"


if __name__ == "__main__":
    main(Path(sys.argv[1]))
