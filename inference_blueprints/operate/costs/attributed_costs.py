"""Divides what nodes cost in a time among models and teams."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from inference_blueprints.operate.costs.node_costs import (
    RateOfNode,
    UnpricedNodes,
    rated_node_costs,
    recorded_node_costs,
)
from inference_blueprints.operate.costs.recorded_values import STEP_SECONDS, Ask, RecordedValues
from inference_blueprints.render.monitoring.cost_shares import (
    UNATTRIBUTED,
    team_costs,
    usd_per_million_tokens,
)
from inference_contracts.units import SECONDS_PER_HOUR

#: GPUs that no worker held.
IDLE: Final = "idle"


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
        Cost of the nodes with a known price, in US dollars.
    hours
        Hours of the time.
    hours_with_nodes
        Hours of them in which CloudWatch has a cost of nodes.
    unpriced
        Nodes without a known price, whose cost is unattributed and in no sum.
    """

    rows: tuple[CostRow, ...]
    nodes_usd: float
    hours: float
    hours_with_nodes: float
    unpriced: tuple[UnpricedNodes, ...] = ()

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
    rate: RateOfNode | None = None,
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
    rate
        The price of a node at the user's own rates. Without it, nodes cost what Prometheus recorded.
    """
    recorded = RecordedValues(ask=ask, platform=platform, start=start, end=end)
    nodes = recorded_node_costs(recorded) if rate is None else rated_node_costs(recorded, rate)
    usd = nodes.usd_by_model
    per_second = recorded.by(f"sum by (model) (serving_output_tokens_per_second{recorded.selector})", "model")
    tokens = {model: sum(each.values()) * STEP_SECONDS for (model,), each in per_second.items()}
    rows: list[CostRow] = []
    for model in sorted({*usd, *tokens} - {UNATTRIBUTED}):
        rows += _model_rows(model, usd.get(model, 0.0), tokens.get(model, 0.0), batch.get(model, {}))
    rows.append(CostRow(model=IDLE, team="", output_tokens=0.0, usd=usd.get(UNATTRIBUTED, 0.0)))
    return AttributedCosts(
        rows=tuple(rows),
        nodes_usd=nodes.nodes_usd,
        hours=(end - start).total_seconds() / SECONDS_PER_HOUR,
        hours_with_nodes=nodes.hours_with_nodes,
        unpriced=nodes.unpriced,
    )


def _model_rows(model: str, usd: float, tokens: float, teams: Mapping[str, float]) -> Iterator[CostRow]:
    """Yield the rows of a model's teams, and last what has no known team."""
    counts = {**teams, UNATTRIBUTED: max(0.0, tokens - sum(teams.values()))}
    shares = team_costs(usd, tokens, teams)
    for team in (*sorted(teams), UNATTRIBUTED):
        yield CostRow(model=model, team=team, output_tokens=counts[team], usd=shares.get(team, 0.0))
