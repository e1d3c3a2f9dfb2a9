"""The SQL of usage records, run on records: what it adds up is what `blueprints usage` says.

Athena has the SQL of Trino (Amazon Athena User Guide, "Athena engine version 3"). sqlglot reads it as that of
Athena and writes it for DuckDB. Athena itself has not been asked.
"""

from __future__ import annotations

import base64
import json
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import duckdb
import pytest
import sqlglot
from sqlglot import ErrorLevel

from inference_blueprints.resources import root
from inference_contracts.usage_record import UsageRecord
from tests.templates.conftest import Synthesise
from tests.templates.test_front_door_stack import STACK, with_front_door
from tests.unit.cli.batch_commands import Run
from tests.unit.cli.test_usage_command import Bucket, at, bucket, document, record, run

__all__ = ["bucket", "run"]

#: Types of Hive as DuckDB names them, and the type of sums in DuckDB as Trino names it.
_FROM_HIVE = {"bigint": "BIGINT", "boolean": "BOOLEAN", "string": "VARCHAR"}
_AS_TRINO = {"HUGEINT": "bigint"}
#: Days with requests at all hours in UTC. Summer time ends at the third.
_DAYS = ("2026-10-04", "2026-10-05", "2026-10-25", "2026-10-26")


def translated(query: str) -> str:
    """Return a query in Athena's SQL as DuckDB takes it. Raises if it has what cannot be translated."""
    [found] = sqlglot.transpile(query, read="athena", write="duckdb", unsupported_level=ErrorLevel.RAISE)
    return found


@dataclass(frozen=True)
class Database:
    """What the templates put into the Glue database, over records."""

    engine: duckdb.DuckDBPyConnection
    view: Any
    """The definition of the view, as Athena reads it."""

    def ask(self, query: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query in Athena's SQL."""
        return self.engine.execute(translated(query)).fetchall()


def with_days_of_berlin(spec: dict[str, Any]) -> None:
    with_front_door(spec)
    spec["frontDoor"] |= {"timeZone": "Europe/Berlin"}


def records() -> list[UsageRecord]:
    """Return requests of different callers, two of them delivered twice."""
    found = [
        record(at(f"{day}T00:15:00") + timedelta(hours=hour), output_tokens=hour, cost_nano=10**9 + hour)
        for day in _DAYS
        for hour in range(24)
    ]
    when = at("2026-10-04T10:00:00")
    role = {"key": None, "caller": "arn:aws:iam::1:role/Ads", "project": "web"}
    found += [
        record(when, team="ads", model="big", cost_nano=7, **role),
        record(when, team="ads", status=503, basis="none", cost_nano=0, **role),
        record(when, user='o\'tto "ö"', status=0, basis="cut"),
        # Callers choose the identifier, so two requests may have the same.
        *(record(when, id="same") for _ in range(2)),
    ]
    return [*found, found[0], found[-1]]


@pytest.fixture
def database(synthesise: Synthesise, tmp_path: Path) -> Database:
    """Return the tables of a platform whose days are those of Berlin."""
    tables = {
        each["TableInput"]["Name"]: each["TableInput"]
        for each in synthesise(with_days_of_berlin).properties("AWS::Glue::Table", STACK)
    }
    file = tmp_path / "usage.json"
    file.write_text("\n".join(each.to_json() for each in records()), encoding="utf-8")
    columns = {
        each["Name"]: _FROM_HIVE[each["Type"]] for each in tables["usage"]["StorageDescriptor"]["Columns"]
    }
    engine = duckdb.connect()
    # Not the zone of this machine: a query must name its own.
    engine.execute("SET TimeZone = 'Pacific/Auckland'")
    engine.read_json(str(file), format="newline_delimited", columns=columns).to_table("usage")
    text = tables["spent_by_day"]["ViewOriginalText"]
    view = json.loads(base64.b64decode(text.removeprefix("/* Presto View: ").removesuffix(" */")))
    engine.execute(f"CREATE VIEW spent_by_day AS {translated(view['originalSql'])}")
    return Database(engine, view)


def test_the_columns_of_the_view_are_those_of_its_query(database: Database) -> None:
    """Red if the catalogue names other columns than the query has, or in another order."""
    shown = database.engine.execute("DESCRIBE spent_by_day").fetchall()
    assert [(name, _AS_TRINO.get(kind, kind.lower())) for name, kind, *_ in shown] == [
        (each["name"], each["type"]) for each in database.view["columns"]
    ]


@pytest.mark.parametrize("by", [["team"], ["key", "model"], ["team", "key", "model"]], ids=" ".join)
def test_the_view_adds_up_what_the_command_does(
    database: Database, run: Run, bucket: Bucket, by: Sequence[str]
) -> None:
    """Red if a record counts twice or on another day, or costs differ from those of the ledger."""
    for number, each in enumerate(records()):
        bucket.add(each.time[:10], each, name=str(number))
    rows = database.ask(
        'SELECT "day", team, "key", model, requests, input_tokens, output_tokens, usd FROM spent_by_day'
    )
    for day in _DAYS:
        sums: dict[tuple[str, ...], list[float]] = defaultdict(lambda: [0] * 4)
        for of_day, team, key, model, *numbers in rows:
            if str(of_day) == day:
                names = {"team": team, "key": key or "-", "model": model}
                group = sums[tuple(names[name] for name in by)]
                group[:] = map(sum, zip(group, numbers, strict=True))
        said = document(run, "--day", day, *(word for name in by for word in ("--by", name)))["rows"]
        expected = {
            tuple(row[name] for name in by): [
                *(row[name] for name in ("requests", "inputTokens", "outputTokens")),
                pytest.approx(row["usd"], rel=1e-12),
            ]
            for row in said
        }
        assert expected
        assert sums == expected


def test_each_day_has_the_requests_of_its_hours_in_the_zone_of_the_ledger(database: Database) -> None:
    """Red if days are those of the machine's zone, or differ from UTC by the same hours all year."""
    days = database.ask('SELECT "day", sum("requests") FROM spent_by_day GROUP BY 1 ORDER BY 1')
    # In summer, a day begins at 22:00 UTC; 25 October ends at 23:00.
    assert {str(day): number for day, number in days} == {
        "2026-10-04": 22 + 5,
        "2026-10-05": 24,
        "2026-10-06": 2,
        "2026-10-25": 23,
        "2026-10-26": 24,
        "2026-10-27": 1,
    }


def test_the_queries_of_the_page_run(database: Database) -> None:
    page = (root() / "docs/front-door-usage.md").read_text(encoding="utf-8")
    [fence] = re.findall(r"```sql\n(.*?)```", page, re.DOTALL)
    # The days of the page, in the month of the records.
    asked = [re.sub(r"'2026-11-\d\d'", "'2026-10-04'", each) for each in fence.split(";") if each.strip()]
    everything, by_team = map(database.ask, asked)
    first_day = [row for row in everything if str(row[0]) == "2026-10-04"]
    assert len(everything) > len(first_day) > len(by_team) == 2
    assert sum(usd for _, usd in by_team) == pytest.approx(sum(row[-1] for row in first_day))
