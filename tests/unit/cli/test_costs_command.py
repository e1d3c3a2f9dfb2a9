"""The command `costs`: which times it takes, and its document."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from inference_blueprints.cli.costs_command import costs_document, full_hours
from inference_blueprints.operate.attributed_costs import AttributedCosts, CostRow, UnpricedNodes
from inference_blueprints.resources import root
from inference_contracts.errors import UserError
from tests.unit.command_run import blueprints

DAY, NEXT = datetime(2026, 1, 1), datetime(2026, 1, 2)
TIMES = ("--from", "2026-01-01", "--to", "2026-01-02")


def test_times_are_in_utc() -> None:
    start, end = full_hours(DAY, NEXT)
    assert (start, end) == (datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC))


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        (NEXT, DAY, "is not before --to"),
        (DAY, DAY, "is not before --to"),
        (DAY.replace(minute=5), NEXT, "got --from 2026-01-01T00:05; allowed are full hours"),
        (DAY, DAY.replace(year=9999), "is in the future"),
    ],
)
def test_other_times_are_refused(start: datetime, end: datetime, expected: str) -> None:
    with pytest.raises(UserError, match=expected):
        full_hours(start, end)


def test_the_document_has_each_row_and_both_sums() -> None:
    row = CostRow(model="m", team="search", output_tokens=2e6, usd=3.0, charged_usd=4.5)
    nodes = UnpricedNodes(pool="spot", instance_type="g6e.2xlarge", purchase="spot", node_hours=7.5)
    found = AttributedCosts(rows=(row,), nodes_usd=3.0, hours=24.0, hours_with_nodes=23.5, unpriced=(nodes,))
    document = costs_document(found, "chat", DAY, NEXT, ["spot"])
    assert document["rows"] == [
        {
            "model": "m",
            "team": "search",
            "outputTokens": 2e6,
            "usd": 3.0,
            "usdPerMillionTokens": 1.5,
            "chargedUsd": 4.5,
        }
    ]
    assert (document["nodesUsd"], document["rowsUsd"], document["hoursWithNodes"]) == (3.0, 3.0, 23.5)
    assert document["poolsWithoutPrice"] == ["spot"]
    assert document["nodesWithoutPrice"] == [
        {"pool": "spot", "instanceType": "g6e.2xlarge", "purchase": "spot", "nodeHours": 7.5}
    ]


def test_a_platform_without_metrics_is_refused_before_the_account_is_asked(tmp_path: Path) -> None:
    ran = blueprints("costs", "quickstart-g6e", *TIMES, folder=tmp_path)
    assert ran.code == 1
    assert "has no section 'observability'" in ran.err


def test_a_wrong_rates_file_is_refused_before_the_account_is_asked(tmp_path: Path) -> None:
    (tmp_path / "rates.yaml").write_text("currency: EUR\n", encoding="utf-8")
    text = (root() / "blueprints/quickstart-g6e.yaml").read_text(encoding="utf-8")
    observed = text.replace("\nspec:\n", "\nspec:\n  observability: {}\n")
    (tmp_path / "observed.yaml").write_text(observed, encoding="utf-8")
    ran = blueprints("costs", "observed.yaml", "--rates", "rates.yaml", *TIMES, folder=tmp_path)
    assert ran.code == 1
    assert "rates are in USD; convert them" in ran.err
