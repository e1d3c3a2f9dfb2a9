"""`blueprints plan` with a user's own rates and as a page."""

from __future__ import annotations

import json
from pathlib import Path

from tests.unit.command_run import Ran, blueprints

_RATES = """\
currency: USD
region: us-west-2
date: "2026-11"
source: a test
usdPerHour:
  g6e.2xlarge: {onDemand: 1}
"""


def _plan(*arguments: str, folder: Path) -> Ran:
    return blueprints("plan", "quickstart-g6e", *arguments, folder=folder)


def test_own_rates_come_first(tmp_path: Path) -> None:
    (tmp_path / "rates.yaml").write_text(_RATES, encoding="utf-8")
    plan = json.loads(_plan("--rates", "rates.yaml", "--output", "json", folder=tmp_path).out)
    assert plan["pools"][0]["usdPerHourUsed"] == 2.0
    assert plan["prices"]["note"].startswith("Your rates take precedence: a test, 2026-11. ")


def test_faulty_rates_are_lines_and_no_traceback(tmp_path: Path) -> None:
    (tmp_path / "rates.yaml").write_text(_RATES.replace("{onDemand: 1}", "{onDemand: x}"), encoding="utf-8")
    ran = _plan("--rates", "rates.yaml", folder=tmp_path)
    assert (ran.code, ran.out) == (1, "")
    assert "rates.yaml:6:27: usdPerHour.g6e.2xlarge.onDemand: got 'x', expected US dollars" in ran.err


def test_json_has_the_sections_that_are_asked_for(tmp_path: Path) -> None:
    """An agent that wants the price reads 1 kB, and not 9."""
    ran = _plan("--output", "json", "--sections", "pools,cost", folder=tmp_path)
    assert list(json.loads(ran.out)) == ["name", "region", "pools", "platformCost", "warnings"]
    wrong = _plan("--output", "json", "--sections", "pols", folder=tmp_path)
    assert wrong.code == 1
    assert "--sections: got pols; allowed are addresses, " in json.loads(wrong.out)["errors"][0]["message"]
    text = _plan("--sections", "pools", folder=tmp_path)
    assert (text.code, text.out) == (1, "")
    assert "add --output json" in text.err


def test_a_page_is_written_beside_the_tables(tmp_path: Path) -> None:
    ran = _plan("--page", "site/plan.html", folder=tmp_path)
    assert ran.code == 0
    assert "quickstart in us-west-2" in ran.out
    assert "wrote site/plan.html" in ran.err
    assert (tmp_path / "site" / "plan.html").read_text(encoding="utf-8").startswith("<!doctype html>")
