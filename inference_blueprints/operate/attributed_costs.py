"""Divides what nodes cost in a time among models and teams."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import islice, product
from typing import Any, Final

from inference_blueprints.operate.aws.account import Account, readable_errors
from inference_blueprints.render.monitoring.cost_shares import (
    UNATTRIBUTED,
    PoolHour,
    model_costs,
    team_costs,
    usd_per_million_tokens,
)
from inference_contracts import batch_names
from inference_contracts.door_configuration import NANO
from inference_contracts.platform_keys import way_model
from inference_contracts.records import dataclass
from inference_contracts.units import SECONDS_PER_HOUR
from inference_contracts.usage_record import UsageRecord
from inference_decisions.promql.cloudwatch_promql import MetricSeries

#: Takes an expression, the first and the last time as seconds since the epoch, and the seconds between two.
Ask = Callable[[str, float, float, float], tuple[MetricSeries, ...]]
#: Values by time, in seconds since the epoch.
Values = Mapping[float, float]

STEP_SECONDS: Final = 300
HOURS_PER_STEP: Final = STEP_SECONDS / 3600
#: Asked at once: 288 values of a series.
_SPAN: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedValues:
    """The recorded series of a platform in a time."""

    ask: Ask
    """Asks for an expression."""
    platform: str
    """`metadata.name`."""
    start: datetime
    end: datetime
    """`start`, `end`: The time."""

    @property
    def selector(self) -> str:
        """The selector of the platform's series."""
        return f'{{platform="{self.platform}"}}'

    def by(self, expression: str, *labels: str) -> Mapping[tuple[str, ...], Values]:
        """Return the values by the values of some labels. The value at a step's end stands for the step."""
        found: dict[tuple[str, ...], dict[float, float]] = defaultdict(dict)
        step, start = timedelta(seconds=STEP_SECONDS), self.start
        while start < self.end:
            until = min(start + _SPAN, self.end)
            for series in self.ask(expression, (start + step).timestamp(), until.timestamp(), STEP_SECONDS):
                found[tuple(series.labels.get(label, "") for label in labels)].update(series.points)
            start = until
        return found


#: https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_GetMetricData.html
_QUERIES_PER_CALL: Final = 500


def batch_tokens(
    account: Account,
    platform: str,
    *,
    teams: Sequence[str],
    models: Sequence[str],
    start: datetime,
    end: datetime,
) -> Mapping[str, Mapping[str, float]]:
    """Return the answer tokens of jobs that ended in a time, by model and team.

    account: Account of the platform.
    platform: `metadata.name`.
    teams, models: Names of the teams, and of the models of queues.
    start, end: Full hours, which is how CloudWatch keeps old values.
    Raises UserError if CloudWatch refuses it.
    """
    found: dict[str, dict[str, float]] = defaultdict(dict)
    pairs = iter(product(teams, models))
    while some := list(islice(pairs, _QUERIES_PER_CALL)):
        queries = [_query(f"q{number}", platform, *pair) for number, pair in enumerate(some)]
        for identity, values in _answers(account, queries, start, end):
            team, model = some[int(identity.removeprefix("q"))]
            found[model][team] = found[model].get(team, 0.0) + sum(values)
    return {model: {team: count for team, count in by.items() if count} for model, by in found.items()}


def _query(identity: str, platform: str, team: str, model: str) -> dict[str, Any]:
    dimensions = {
        batch_names.PLATFORM_DIMENSION: platform,
        batch_names.TEAM_DIMENSION: team,
        batch_names.MODEL_DIMENSION: model,
    }
    metric = {
        "Namespace": batch_names.METRIC_NAMESPACE,
        "MetricName": batch_names.OUTPUT_TOKENS,
        "Dimensions": [{"Name": name, "Value": value} for name, value in dimensions.items()],
    }
    return {"Id": identity, "MetricStat": {"Metric": metric, "Period": SECONDS_PER_HOUR, "Stat": "Sum"}}


def _answers(
    account: Account, queries: Sequence[Mapping[str, Any]], start: datetime, end: datetime
) -> Iterator[tuple[str, Sequence[float]]]:
    """Yield values by query; a long answer has several parts."""
    more: dict[str, str] = {}
    while True:
        with readable_errors():
            answer = account.client("cloudwatch").get_metric_data(
                MetricDataQueries=queries, StartTime=start, EndTime=end, **more
            )
        for result in answer["MetricDataResults"]:
            yield result["Id"], result["Values"]
        if not answer.get("NextToken"):
            return
        more = {"NextToken": answer["NextToken"]}


@dataclass(frozen=True, slots=True)
class DoorShares:
    """What callers of the front door used in a time, by model of the file and team."""

    output_tokens: Mapping[str, Mapping[str, float]]
    usd: Mapping[str, Mapping[str, float]]
    """`output_tokens`, `usd`: Tokens of answers, and what was charged in US dollars."""
    of_batch: frozenset[str] = frozenset()
    """Models of which batch is among the callers."""


def door_shares(records: Iterable[UsageRecord], models: Mapping[str, str]) -> DoorShares:
    """Return what teams used.

    models: Model of each cluster that answers.
    """
    tokens: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    nano: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    of_batch = set()
    for record in records:
        # The deployment may have left the file since then.
        model = models.get(record.target, record.model)
        tokens[model][record.team] += record.output_tokens
        nano[model][record.team] += record.cost_nano
        if record.model.startswith(way_model("batch", "")):
            of_batch.add(model)
    usd = {model: {team: each / NANO for team, each in by.items()} for model, by in nano.items()}
    return DoorShares(tokens, usd, frozenset(of_batch))


#: Takes the pool, the instance type and Karpenter's capacity type of a node; None if its price is not known.
RateOfNode = Callable[[str, str, str], float | None]
_NODE_LABELS: Final = ("pool", "instance_type", "purchase")
#: GPUs that no worker held.
IDLE: Final = "idle"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnpricedNodes:
    """Nodes that ran and whose price is not known. Their cost is in no sum."""

    pool: str
    instance_type: str
    """`pool`, `instance_type`: Name of the pool and EC2 instance type."""
    purchase: str
    """Karpenter's capacity type: ``on-demand``, ``spot`` or ``reserved``."""
    node_hours: float
    """Nodes times hours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeCosts:
    """The cost of the nodes with a known price, and the nodes without one."""

    usd_by_model: Mapping[str, float]
    """US dollars by model, and under ``unattributed`` those of GPUs that no worker held."""
    nodes_usd: float
    """US dollars of the nodes with a known price."""
    hours_with_nodes: float
    """Hours in which CloudWatch has a cost of nodes."""
    unpriced: tuple[UnpricedNodes, ...]
    """Nodes without a known price."""


def recorded_node_costs(recorded: RecordedValues) -> NodeCosts:
    """Return the cost at the prices that Prometheus recorded."""
    here = recorded.selector
    on = ", ".join(_NODE_LABELS)
    nodes = recorded.by(f"sum (pool_usd_per_hour{here})")[()]
    models = recorded.by(f"sum by (model) (model_usd_per_hour{here})", "model")
    unpriced = recorded.by(
        f"sum by ({on}) (pool_nodes{here} unless on ({on}) pool_node_usd_per_hour{here})", *_NODE_LABELS
    )
    return NodeCosts(
        usd_by_model={model: sum(usd.values()) * HOURS_PER_STEP for (model,), usd in models.items()},
        nodes_usd=sum(nodes.values()) * HOURS_PER_STEP,
        hours_with_nodes=len(nodes) * HOURS_PER_STEP,
        unpriced=tuple(_unpriced(unpriced)),
    )


def rated_node_costs(recorded: RecordedValues, rate: RateOfNode) -> NodeCosts:
    """Return the cost at the user's own rates.

    recorded: The recorded series of the platform.
    rate: The price of a node.
    """
    here = recorded.selector
    nodes = recorded.by(f"sum by ({', '.join(_NODE_LABELS)}) (pool_nodes{here})", *_NODE_LABELS)
    gpus = recorded.by(f"sum by (pool) (pool_gpus{here})", "pool")
    held = recorded.by(f"sum by (pool, model) (serving_gpus{here})", "pool", "model")
    rates = {labels: rate(*labels) for labels in nodes}
    usd: dict[str, dict[float, float]] = defaultdict(lambda: defaultdict(float))
    for labels, counts in nodes.items():
        price = rates[labels]
        if price is None:
            continue
        for time, count in counts.items():
            usd[labels[0]][time] += count * price
    by_model: dict[str, float] = defaultdict(float)
    for pool, costs in usd.items():
        for time, cost in costs.items():
            holders = {model: each[time] for (of, model), each in held.items() if of == pool and time in each}
            hour = PoolHour(usd=cost, gpus=gpus[(pool,)].get(time, 0.0), held=holders)
            for model, share in model_costs([hour]).items():
                by_model[model] += share * HOURS_PER_STEP
    return NodeCosts(
        usd_by_model=by_model,
        nodes_usd=sum(sum(costs.values()) for costs in usd.values()) * HOURS_PER_STEP,
        hours_with_nodes=len({time for costs in usd.values() for time in costs}) * HOURS_PER_STEP,
        unpriced=tuple(_unpriced({labels: nodes[labels] for labels in nodes if rates[labels] is None})),
    )


def _unpriced(nodes: Mapping[tuple[str, ...], Values]) -> Iterator[UnpricedNodes]:
    for (pool, instance_type, purchase), counts in sorted(nodes.items()):
        hours = sum(counts.values()) * HOURS_PER_STEP
        if hours:
            yield UnpricedNodes(pool=pool, instance_type=instance_type, purchase=purchase, node_hours=hours)


@dataclass(frozen=True, slots=True, kw_only=True)
class CostRow:
    """What a team's share of a model cost."""

    model: str
    """Name of the model; `IDLE` for GPUs that no worker held."""
    team: str
    """Name of the team; `UNATTRIBUTED` for callers that are not known. Empty for `IDLE`."""
    output_tokens: float
    """Tokens that were generated."""
    usd: float
    """US dollars."""
    charged_usd: float | None = None
    """What the front door has charged the team for the model, in US dollars. None without a front door."""

    @property
    def usd_per_million_tokens(self) -> float | None:
        """US dollars per million output tokens; None without tokens."""
        return usd_per_million_tokens(self.usd, self.output_tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class AttributedCosts:
    """The cost of nodes, and whose it is."""

    rows: tuple[CostRow, ...]
    """Shares, whose sum is the cost."""
    nodes_usd: float
    """Cost of the nodes with a known price, in US dollars."""
    hours: float
    """Hours of the time."""
    hours_with_nodes: float
    """Hours of them in which CloudWatch has a cost of nodes."""
    unpriced: tuple[UnpricedNodes, ...] = ()
    """Nodes without a known price, whose cost is unattributed and in no sum."""

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
    door: DoorShares | None = None,
) -> AttributedCosts:
    """Return the cost of the nodes by model and team.

    A model's cost is divided by the output tokens of the whole time. Only batch jobs and callers of the front
    door have a team.

    ask: Asks for recorded series.
    platform: `metadata.name`.
    batch: Output tokens of batch jobs by model and team.
    door: What callers of the front door used. None without one.
    start, end: The time.
    rate: The price of a node at the user's own rates. Without it, nodes cost what Prometheus recorded.
    """
    recorded = RecordedValues(ask=ask, platform=platform, start=start, end=end)
    nodes = recorded_node_costs(recorded) if rate is None else rated_node_costs(recorded, rate)
    usd = nodes.usd_by_model
    per_second = recorded.by(f"sum by (model) (serving_output_tokens_per_second{recorded.selector})", "model")
    tokens = {model: sum(each.values()) * STEP_SECONDS for (model,), each in per_second.items()}
    rows: list[CostRow] = []
    if door is not None:  # its records have the requests of batch, which would count twice
        batch = {model: teams for model, teams in batch.items() if model not in door.of_batch}
    counts = by_team(batch, {} if door is None else door.output_tokens)
    for model in sorted({*usd, *tokens, *counts} - {UNATTRIBUTED}):
        charged = None if door is None else door.usd.get(model, {})
        rows += _model_rows(
            model, usd.get(model, 0.0), tokens.get(model, 0.0), counts.get(model, {}), charged
        )
    rows.append(CostRow(model=IDLE, team="", output_tokens=0.0, usd=usd.get(UNATTRIBUTED, 0.0)))
    return AttributedCosts(
        rows=tuple(rows),
        nodes_usd=nodes.nodes_usd,
        hours=(end - start).total_seconds() / SECONDS_PER_HOUR,
        hours_with_nodes=nodes.hours_with_nodes,
        unpriced=nodes.unpriced,
    )


def by_team(*parts: Mapping[str, Mapping[str, float]]) -> Mapping[str, Mapping[str, float]]:
    """Return the sums of counts by model and team.

    parts: Counts by model and team.
    """
    found: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for part in parts:
        for model, teams in part.items():
            for team, count in teams.items():
                found[model][team] += count
    return found


def _model_rows(
    model: str,
    usd: float,
    tokens: float,
    teams: Mapping[str, float],
    charged: Mapping[str, float] | None,
) -> Iterator[CostRow]:
    """Yield the rows of a model's teams, and last what has no known team."""
    counts = {**teams, UNATTRIBUTED: max(0.0, tokens - sum(teams.values()))}
    shares = team_costs(usd, tokens, teams)
    for team in (*sorted(teams), UNATTRIBUTED):
        yield CostRow(
            model=model,
            team=team,
            output_tokens=counts[team],
            usd=shares.get(team, 0.0),
            charged_usd=None if charged is None else charged.get(team, 0.0),
        )
