"""Differences between engines: each is listed, and what is listed still differs."""

from __future__ import annotations

from tests.engines.comparison.differences import (
    ABSENT,
    Difference,
    Evidence,
    Expected,
    differences,
    expected_differences,
    unexpected,
    vanished,
)
from tests.engines.comparison.observation import Fact


def _expected(
    *, part: str = "api", cases: tuple[str, ...] = ("chat*",), fact: str = "tokens", simulated: Fact = 1
) -> Expected:
    evidence = Evidence(part, cases, fact, simulated, 2)
    return Expected("the number of tokens", "one", "two", "none", (evidence,))


def _found(fact: str = "tokens", simulated: Fact = 1, case: str = "chat, plain") -> Difference:
    return Difference("api", case, fact, simulated, 2)


def test_equal_facts_do_not_differ() -> None:
    assert differences("api", {"chat": {"status": 200, "n": 1}}, {"chat": {"status": 200, "n": 1}}) == []


def test_a_fact_differs_by_value_by_type_and_by_absence() -> None:
    simulated: dict[str, dict[str, Fact]] = {"chat": {"status": 200, "n": 1, "flag": True, "only here": "x"}}
    real: dict[str, dict[str, Fact]] = {"chat": {"status": 200, "n": 2, "flag": 1, "only there": None}}
    assert differences("api", simulated, real) == [
        Difference("api", "chat", "n", 1, 2),
        Difference("api", "chat", "flag", True, 1),  # noqa: FBT003 -- a value of JSON
        Difference("api", "chat", "only here", "x", ABSENT),
        Difference("api", "chat", "only there", ABSENT, None),
    ]


def test_of_different_statuses_only_these_are_compared() -> None:
    found = differences("api", {"chat": {"status": 200, "n": 1}}, {"chat": {"status": 400}})
    assert found == [Difference("api", "chat", "status", 200, 400)]


def test_a_case_of_one_engine_alone_differs() -> None:
    assert differences("metrics", {"a": {"type": "gauge"}}, {}) == [
        Difference("metrics", "a", "type", "gauge", ABSENT)
    ]


def test_a_listed_difference_is_expected_and_others_are_not() -> None:
    assert unexpected([_found()], [_expected()]) == []
    assert unexpected([_found()], []) != []
    for other in (
        _expected(part="kv"),
        _expected(cases=("text*",)),
        _expected(fact="finish"),
        _expected(simulated=3),
        _expected(simulated=True),
    ):
        assert unexpected([_found()], [other]) == [str(_found())]


def test_any_value_may_be_listed() -> None:
    assert unexpected([_found(simulated=77)], [_expected(simulated="*")]) == []


def test_what_does_not_differ_any_more_is_reported() -> None:
    assert vanished("api", [_found()], [_expected()]) == []
    assert vanished("api", [], [_expected()]) == ["the number of tokens: tokens of chat*"]
    assert vanished("kv", [], [_expected()]) == [], "another part was not compared"


def test_every_entry_of_the_file_has_evidence_and_says_what_follows() -> None:
    entries = expected_differences()
    assert entries
    assert len({each.what for each in entries}) == len(entries)
    for each in entries:
        assert each.evidence
        assert all((each.what, each.simulated, each.real, each.consequence))
