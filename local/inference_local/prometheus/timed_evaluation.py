"""Evaluates rules and queries over written series with the engine of a real Prometheus, without waiting."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from inference_blueprints.single_build import Report
from inference_contracts.errors import UserError
from inference_local.control_plane import artefacts, build


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedQuery:
    """A PromQL expression and the times at which it is evaluated, in seconds since the first value."""

    expression: str
    """An expression whose result is an instant vector or a number."""
    start_seconds: float
    end_seconds: float
    """`start_seconds`, `end_seconds`: First and last time."""
    step_seconds: float = 60.0
    """Time between two."""


@dataclass(frozen=True, slots=True)
class TimedSeries:
    """One series of an answer."""

    labels: Mapping[str, str]
    values: tuple[tuple[float, float], ...]
    """Pairs of seconds since the first value, and value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedEvaluation:
    """Series, the rules over them, and queries."""

    series: Sequence[str]
    """In the notation of Prometheus' unit tests, such as ``up{pod="a"} 1x20 0x5``.
    https://prometheus.io/docs/prometheus/latest/configuration/unit_testing_rules/#series."""
    queries: Sequence[TimedQuery]
    """What is asked. The answers have the same order."""
    rules: str = ""
    """A file of recording rules, or nothing. They are evaluated at every interval."""
    interval_seconds: float = 60.0
    """Time between two values of a series."""


def evaluate(evaluations: Sequence[TimedEvaluation], report: Report) -> list[list[tuple[TimedSeries, ...]]]:
    """Return the answers to the queries of each evaluation.

    report: Called with a line when the program is found in the cache or built.
    Raises UserError if Prometheus refuses a series, a rule or a query.
    """
    program = build.program(artefacts.PROMETHEUS, report) / artefacts.PROMETHEUS.name
    lines = "".join(f"{json.dumps(_request(each))}\n" for each in evaluations)
    result = subprocess.run([program, "evaluate"], input=lines, capture_output=True, text=True, check=False)
    if result.returncode:
        raise UserError(f"Prometheus did not evaluate the series: {result.stderr.strip()}")
    answers = [json.loads(line) for line in result.stdout.splitlines()]
    for answer in answers:
        if error := answer.get("error"):
            raise UserError(f"Prometheus refused an evaluation: {error}")
    return [[_series(each) for each in answer["results"]] for answer in answers]


def _request(evaluation: TimedEvaluation) -> Mapping[str, Any]:
    return {
        "intervalSeconds": evaluation.interval_seconds,
        "series": list(evaluation.series),
        "rules": evaluation.rules,
        "queries": [
            {
                "expression": query.expression,
                "startSeconds": query.start_seconds,
                "endSeconds": query.end_seconds,
                "stepSeconds": query.step_seconds,
            }
            for query in evaluation.queries
        ],
    }


def _series(answer: Sequence[Mapping[str, Any]]) -> tuple[TimedSeries, ...]:
    return tuple(
        TimedSeries(each["labels"], tuple((at, float(value)) for at, value in each["values"]))
        for each in answer
    )
