"""Redriving dead letters: calls until all have been seen, and what the command prints."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from inference_blueprints.cli.options import Output
from inference_blueprints.cli.streaming_commands import app, show_redrive
from inference_blueprints.loading import load_blueprint
from inference_blueprints.operate.streaming import LetterChoice, RedriveReport, redrive_letters, streaming_job
from inference_contracts.errors import UserError

CHOICE = LetterChoice(
    ("timeout",), events=False, dry_run=False, per_second=9.0, since_milliseconds=7, limit=None
)


class Function:
    """Answers with prepared parts of a topic, in order."""

    def __init__(self, *answers: dict[str, Any]) -> None:
        self.answers = list(answers)
        self.events: list[dict[str, Any]] = []

    def __call__(self, event: Mapping[str, Any]) -> Mapping[str, Any]:
        self.events.append(dict(event))
        return self.answers.pop(0)


def part(seen: int, redriven: int, *, done: bool, failures: tuple[str, ...] = ()) -> dict[str, Any]:
    outcomes = {"redriven": redriven, **({"failed": len(failures)} if failures else {})}
    return {
        "seen": seen,
        "counts": {"timeout": outcomes},
        "failures": list(failures),
        "start": {"0": seen},
        "end": {"0": 10},
        "done": done,
    }


def test_calls_go_on_where_the_former_ended_until_all_are_seen() -> None:
    function = Function(part(6, 5, done=False, failures=("503",)), part(4, 4, done=True))
    shown: list[int] = []
    report = redrive_letters(function, CHOICE, lambda so_far: shown.append(so_far.seen))
    assert report.seen == 10
    assert report.counts == {"timeout": Counter(redriven=9, failed=1)}
    assert report.failures == ["503"]
    first, second = function.events
    assert first == {
        "reasons": ["timeout"],
        "events": False,
        "dryRun": False,
        "perSecond": 9.0,
        "sinceMilliseconds": 7,
    }
    assert (second["start"], second["end"]) == ({"0": 6}, {"0": 10})
    assert shown == [6, 10]


def test_a_limit_holds_over_all_calls() -> None:
    choice = LetterChoice((), events=False, dry_run=True, per_second=1.0, since_milliseconds=0, limit=7)
    function = Function(part(6, 6, done=False), part(1, 1, done=False))
    assert redrive_letters(function, choice, lambda _: None).seen == 7
    assert [event["limit"] for event in function.events] == [7, 1]


def test_a_dry_run_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    report = RedriveReport(3, {"timeout": Counter(redriven=2, superseded=1)})
    show_redrive(report, Output.TEXT, dry_run=True)
    assert capsys.readouterr().out.splitlines() == [
        "timeout: 1 superseded, 2 would be redriven",
        "Nothing was changed. Redrive with --apply.",
    ]


def test_what_fails_again_is_an_exit_code_and_a_reason(capsys: pytest.CaptureFixture[str]) -> None:
    report = RedriveReport(1, {"endpoint": Counter(failed=1)}, ["endpoint, session s-1: 503"])
    with pytest.raises(typer.Exit):
        show_redrive(report, Output.JSON, dry_run=False)
    assert json.loads(capsys.readouterr().out) == {
        "dryRun": False,
        "seen": 1,
        "counts": {"endpoint": {"failed": 1}},
        "failures": ["endpoint, session s-1: 503"],
    }


def test_an_unknown_job_is_told_with_those_that_exist() -> None:
    blueprint = load_blueprint("streaming-g6e").blueprint
    assert streaming_job(blueprint, "shopper").name == "shopper"
    with pytest.raises(UserError, match="got the job basket; allowed are shopper"):
        streaming_job(blueprint, "basket")
    with pytest.raises(UserError, match="no section `streaming`"):
        streaming_job(load_blueprint("quickstart-g6e").blueprint, "shopper")


def test_a_reason_that_no_dead_letter_has_is_refused_before_anything_is_asked() -> None:
    ran = CliRunner().invoke(app, ["redrive", "streaming-g6e", "shopper", "--reason", "slow"])
    assert isinstance(ran.exception, UserError)
    assert "got --reason slow; allowed are poison" in str(ran.exception)
