"""Compares facts of simulated and real engines with the differences that are expected.

The expected differences are in ``differences.json``. Each has the facts that show it. The page
``docs/real-engines.md`` lists them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from tests.engines.comparison.observation import Fact, Facts

#: The value of a fact that only the other engine has.
ABSENT = "absent"
_ANY = "*"
_FILE = Path(__file__).with_name("differences.json")


@dataclass(frozen=True, slots=True)
class Difference:
    """A fact that differs between the engines."""

    part: str
    case: str
    fact: str
    simulated: Fact
    real: Fact

    def __str__(self) -> str:
        return f"{self.part}: {self.case}: {self.fact}: simulated {self.simulated!r}, real {self.real!r}"


@dataclass(frozen=True, slots=True)
class Evidence:
    """The facts that show an expected difference. Names may contain ``*``; a value ``*`` is any value."""

    part: str
    cases: tuple[str, ...]
    fact: str
    simulated: Fact
    real: Fact

    def shows(self, difference: Difference) -> bool:
        """Return whether a difference is one of these."""
        return (
            fnmatchcase(difference.part, self.part)
            and any(fnmatchcase(difference.case, case) for case in self.cases)
            and fnmatchcase(difference.fact, self.fact)
            and _same(self.simulated, difference.simulated)
            and _same(self.real, difference.real)
        )


@dataclass(frozen=True, slots=True)
class Expected:
    """An expected difference."""

    what: str
    """What differs."""
    simulated: str
    real: str
    """`simulated`, `real`: What each engine does, for the page."""
    consequence: str
    """What follows for a user who trusts a run with simulated engines."""
    evidence: tuple[Evidence, ...]
    """The facts that show it."""


def expected_differences() -> tuple[Expected, ...]:
    """Return the expected differences of the file."""
    return tuple(
        Expected(
            **{name: entry[name] for name in ("what", "simulated", "real", "consequence")},
            evidence=tuple(
                Evidence(
                    shown["part"],
                    tuple(shown["cases"]),
                    shown["fact"],
                    shown["simulated"],
                    shown["real"],
                )
                for shown in entry["evidence"]
            ),
        )
        for entry in json.loads(_FILE.read_text(encoding="utf-8"))
    )


def differences(part: str, simulated: Mapping[str, Facts], real: Mapping[str, Facts]) -> list[Difference]:
    """Return the facts that differ. If the statuses of a case differ, its other facts are left out.

    part: What was compared.
    simulated, real: Facts by case.
    """
    found = []
    for case in dict.fromkeys((*simulated, *real)):
        left, right = simulated.get(case, {}), real.get(case, {})
        names = list(dict.fromkeys((*left, *right)))
        if left.get("status") != right.get("status"):
            names = ["status"]
        found += [
            Difference(part, case, name, left.get(name, ABSENT), right.get(name, ABSENT))
            for name in names
            if not _equal(left.get(name, ABSENT), right.get(name, ABSENT))
        ]
    return found


def unexpected(found: Iterable[Difference], expected: Iterable[Expected]) -> list[str]:
    """Return a line for each difference that is not expected.

    found: What differs.
    expected: What may differ.
    """
    shown = [evidence for each in expected for evidence in each.evidence]
    return [str(each) for each in found if not any(evidence.shows(each) for evidence in shown)]


def vanished(part: str, found: Iterable[Difference], expected: Iterable[Expected]) -> list[str]:
    """Return a line for each expected fact of a part that does not differ any more.

    expected: What should differ.
    """
    differing = list(found)
    return [
        f"{each.what}: {evidence.fact} of {', '.join(evidence.cases)}"
        for each in expected
        for evidence in each.evidence
        if fnmatchcase(part, evidence.part) and not any(evidence.shows(one) for one in differing)
    ]


def _same(expected: Fact, value: Fact) -> bool:
    return expected == _ANY or _equal(expected, value)


def _equal(one: Fact, other: Fact) -> bool:
    """Return whether two facts are equal. In JSON, 1 and true are not."""
    return one == other and type(one) is type(other)
