"""Divides what nodes cost in a time among models and teams."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from inference_blueprints.monitoring.cost_shares import (
    UNATTRIBUTED,
    team_costs,
    usd_per_million_tokens,
)
from inference_blueprints.promql.cloudwatch_promql import MetricSeries

#: Takes an expression, the first and the last time as seconds since the epoch, and the seconds between two.
Ask = Callable[[str, float, float, float], tuple[MetricSeries, ...]]

#: GPUs that no worker held.
IDLE: Final = "idle"
STEP_SECONDS: Final = 300
_HOUR_SECONDS: Final = 3600
#: Asked at once: 288 values of a series.
_SPAN: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class CostRow:
    """What a team's share of a model cost.

    Parameters
    ----------
    model
        Name of the model; `IDLE` for GPUs that no worker held.
    team
        Name of the team; `UNATTRIBUTED` for callers that are not known. Empty for `IDLE`.
    output_tokens
        Tokens that were generated.
    usd
        US dollars.
    """

    model: str
    team: str
    output_tokens: float
    usd: float

    @property
    def usd_per_million_tokens(self) -> float | None:
        """US dollars per million output tokens; None without tokens."""
        return usd_per_million_tokens(self.usd, self.output_tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class AttributedCosts:
    """The cost of nodes, and whose it is.

    Parameters
    ----------
    rows
        Shares, whose sum is the cost.
    nodes_usd
        Cost of the nodes, in US dollars.
    hours
        Hours of the time.
    hours_with_nodes
        Hours of them in which CloudWatch has a cost of nodes.
    """

    rows: tuple[CostRow, ...]
    nodes_usd: float
    hours: float
    hours_with_nodes: float

    @property
    def rows_usd(self) -> float:
        """Sum of the rows, in US dollars."""
        return sum(row.usd for row in self.rows)


def attributed_costs(
    ask: Ask,
    platform: str,
    *,
    batch: Mapping[str, Mapping[str, float]],
    start: datetime,
    end: datetime,
) -> AttributedCosts:
    """Return the cost of the nodes by model and team.

    A model's cost is divided by the output tokens of the whole time. Only batch jobs have a team.

    Parameters
    ----------
    ask
        Asks for recorded series.
    platform
        `metadata.name`.
    batch
        Output tokens of batch jobs by model and team.
    start, end
        The time.
    """
    here = f'{{platform="{platform}"}}'
    hours_per_step = STEP_SECONDS / _HOUR_SECONDS
    nodes = _values(ask, f"sum (pool_usd_per_hour{here})", start, end)[""]
    usd = _values(ask, f"sum by (model) (model_usd_per_hour{here})", start, end)
    tokens = _values(ask, f"sum by (model) (serving_output_tokens_per_second{here})", start, end)
    rows: list[CostRow] = []
    for model in sorted({*usd, *tokens} - {UNATTRIBUTED}):
        cost = sum(usd[model]) * hours_per_step
        rows += _model_rows(model, cost, sum(tokens[model]) * STEP_SECONDS, batch.get(model, {}))
    idle = sum(usd[UNATTRIBUTED]) * hours_per_step
    rows.append(CostRow(model=IDLE, team="", output_tokens=0.0, usd=idle))
    return AttributedCosts(
        rows=tuple(rows),
        nodes_usd=sum(nodes) * hours_per_step,
        hours=(end - start).total_seconds() / _HOUR_SECONDS,
        hours_with_nodes=len(nodes) * hours_per_step,
    )


def _model_rows(model: str, usd: float, tokens: float, teams: Mapping[str, float]) -> Iterator[CostRow]:
    """Yield the rows of a model's teams, and last what has no known team."""
    counts = {**teams, UNATTRIBUTED: max(0.0, tokens - sum(teams.values()))}
    shares = team_costs(usd, tokens, teams)
    for team in (*sorted(teams), UNATTRIBUTED):
        yield CostRow(model=model, team=team, output_tokens=counts[team], usd=shares.get(team, 0.0))


def _values(ask: Ask, expression: str, start: datetime, end: datetime) -> dict[str, list[float]]:
    """Return the values by model. The value at a step's end stands for the step."""
    found: dict[str, list[float]] = defaultdict(list)
    step = timedelta(seconds=STEP_SECONDS)
    while start < end:
        until = min(start + _SPAN, end)
        for series in ask(expression, (start + step).timestamp(), until.timestamp(), STEP_SECONDS):
            found[series.labels.get("model", "")] += [value for _, value in series.points]
        start = until
    return found
