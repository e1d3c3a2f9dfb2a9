"""The cost queries in a real Prometheus agree with the cost functions, and sum to the price of the nodes."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from inference_blueprints.loading import load_blueprint
from inference_blueprints.operate.attributed_costs import IDLE, Ask, attributed_costs
from inference_blueprints.render.monitoring.cost_shares import UNATTRIBUTED, PoolHour, model_costs
from inference_blueprints.render.monitoring.recording_rules import NodePrice, rule_file, rules
from inference_blueprints.report.pricing.rates import CustomRates, node_rate, prices_for
from inference_blueprints.serving.plan import build_plan
from inference_decisions.promql.cloudwatch_promql import MetricSeries
from inference_local.prometheus.timed_evaluation import (
    TimedEvaluation,
    TimedQuery,
    TimedSeries,
    evaluate,
)
from tests.local.monitoring import series as of

_USD, _MINUTES = 2.24, 30


def _costs(series: of.Series) -> dict[str, float]:
    blueprint = load_blueprint("quickstart-g6e").blueprint
    price = NodePrice(pool="l40s", instance_type="g6e.2xlarge", purchase="on-demand", usd_per_hour=_USD)
    file = rule_file(rules(blueprint.metadata.name, build_plan(blueprint), objectives={}, prices=[price]))
    at = 60.0 * _MINUTES
    names = ("model_usd_per_hour", "pool_usd_per_hour", "model_usd_per_million_output_tokens")
    queries = [TimedQuery(expression=name, start_seconds=at, end_seconds=at) for name in names]
    ((models, pools, tokens),) = evaluate(
        [TimedEvaluation(series=of.lines(series), queries=queries, rules=file)], lambda _: None
    )
    found = {each.labels["model"]: each.values[0][1] for each in models}
    found["all"] = pools[0].values[0][1]
    return found | {f"{each.labels['model']} tokens": each.values[0][1] for each in tokens}


def _gpus(count: int) -> of.Series:
    """Return the platform with this number of nodes, each with one GPU, and two workers."""
    series = {
        name: values for name, values in of.well(_MINUTES).items() if "DCGM_FI_DEV_GPU_UTIL" not in name
    }
    for number in range(1, count + 1):
        series |= of.gpu("GPU_UTIL", number, f"50x{_MINUTES}")
    return series


@pytest.mark.parametrize("nodes", [1, 2, 5])
def test_models_and_the_rest_sum_to_the_nodes(nodes: int) -> None:
    costs = _costs(_gpus(nodes))
    expected = model_costs([PoolHour(usd=nodes * _USD, gpus=nodes, held={"qwen3-8b": 2})])
    assert costs["all"] == pytest.approx(nodes * _USD)
    assert costs["qwen3-8b"] + costs[UNATTRIBUTED] == pytest.approx(costs["all"], rel=0.01)
    assert costs["qwen3-8b"] == pytest.approx(expected["qwen3-8b"])
    assert costs[UNATTRIBUTED] == pytest.approx(expected[UNATTRIBUTED])
    # 6,000 tokens per minute.
    assert costs["qwen3-8b tokens"] == pytest.approx(costs["qwen3-8b"] / 360_000 * 1e6, rel=0.01)


def test_nodes_without_workers_are_unattributed() -> None:
    series = {name: values for name, values in _gpus(3).items() if not name.startswith(f"up{{{of.WORKER}")}
    costs = _costs(series)
    assert costs[UNATTRIBUTED] == pytest.approx(3 * _USD)
    assert "qwen3-8b" not in costs


def _ask(series: of.Series, minutes: int) -> Ask:
    """Return what answers a query by a real Prometheus. It knows the price of nodes on demand only.

    The rules are evaluated once, for all queries.
    """
    blueprint = load_blueprint("quickstart-g6e").blueprint
    price = NodePrice(pool="l40s", instance_type="g6e.2xlarge", purchase="on-demand", usd_per_hour=_USD)
    found = rules(blueprint.metadata.name, build_plan(blueprint), objectives={}, prices=[price])
    names = sorted({rule.record for rule in found})
    every = [TimedQuery(expression=name, start_seconds=0, end_seconds=60.0 * minutes) for name in names]
    (answers,) = evaluate(
        [TimedEvaluation(series=of.lines(series), queries=every, rules=rule_file(found))], lambda _: None
    )
    recorded = [_written(each, minutes) for answer in answers for each in answer]

    def ask(expression: str, start: float, end: float, step: float) -> tuple[MetricSeries, ...]:
        query = TimedQuery(expression=expression, start_seconds=start, end_seconds=end, step_seconds=step)
        ((found,),) = evaluate([TimedEvaluation(series=recorded, queries=[query])], lambda _: None)
        return tuple(MetricSeries(each.labels, tuple(each.values)) for each in found)

    return ask


def _written(series: TimedSeries, minutes: int) -> str:
    """Return a recorded series as a written one. After its end it is stale, as Prometheus records it."""
    values = dict(series.values)
    labels = ",".join(f'"{name}"="{value}"' for name, value in series.labels.items() if name != "__name__")
    numbers = [repr(values[60.0 * at]) if 60.0 * at in values else "stale" for at in range(minutes + 1)]
    return f"{series.labels['__name__']}{{{labels}}} {' '.join(numbers)}"


def test_costs_of_teams_over_changing_nodes_are_those_computed_by_hand() -> None:
    """The queries of `blueprints costs`, answered by a real Prometheus.

    The second node and its worker come after an hour. A third node has no worker and goes after three hours.
    """
    minutes = 600
    series = {
        name: values
        for name, values in of.well(minutes).items()
        if "DCGM_FI_DEV_GPU_UTIL" not in name and not name.startswith(f'up{{{of.WORKER},pod="worker-2"')
    }
    series |= of.gpu("GPU_UTIL", 1, f"50x{minutes}")
    series |= of.gpu("GPU_UTIL", 2, "_x60 50x540")
    series |= of.gpu("GPU_UTIL", 3, "_x300 50x180 stale")
    series |= {f'up{{{of.WORKER},pod="worker-2",node="node-2"}}': "_x60 1x540"}
    found = attributed_costs(
        _ask(series, minutes),
        "quickstart",
        batch={"qwen3-8b": {"search": 900_000.0}},
        start=datetime.fromtimestamp(0, UTC),
        end=datetime.fromtimestamp(60 * minutes, UTC),
    )
    rows = {(row.model, row.team): row.usd for row in found.rows}
    # Nodes for 10, 9 and 3 hours; 6,000 tokens per minute.
    serving, idle = 19 * _USD, 3 * _USD
    assert found.nodes_usd == pytest.approx(serving + idle, rel=0.01)
    assert found.rows_usd == pytest.approx(found.nodes_usd, rel=0.01)
    assert rows["qwen3-8b", "search"] == pytest.approx(serving / 4, rel=0.02)
    assert rows["qwen3-8b", UNATTRIBUTED] == pytest.approx(serving * 3 / 4, rel=0.02)
    assert rows[IDLE, ""] == pytest.approx(idle, rel=0.03)


def test_spot_nodes_cost_the_user_s_own_rates_and_without_them_are_named() -> None:
    """The first node is on demand. The second is a spot node and comes after an hour."""
    minutes = 180
    series = {name: values for name, values in of.well(minutes).items() if "DCGM_FI_DEV_GPU_UTIL" not in name}
    series |= of.gpu("GPU_UTIL", 1, f"50x{minutes}")
    spot = {name.replace("on-demand", "spot"): "_x60 50x120" for name in of.gpu("GPU_UTIL", 2, "")}
    own = {("g6e.2xlarge", "spot"): 0.5, ("g6e.2xlarge", "onDemand"): 2.0}
    pools = load_blueprint("quickstart-g6e").blueprint.spec.pools
    rates = CustomRates(region="us-east-1", date="2026-11-01", source="a contract", usd_per_hour=own)
    ask = _ask(series | spot, minutes)
    with_rates, without = (
        attributed_costs(
            ask,
            "quickstart",
            batch={},
            start=datetime.fromtimestamp(0, UTC),
            end=datetime.fromtimestamp(60 * minutes, UTC),
            rate=rate,
        )
        for rate in (node_rate(prices_for("us-east-1", rates), pools), None)
    )
    assert with_rates.nodes_usd == pytest.approx(3 * 2.0 + 2 * 0.5, rel=0.02)
    assert with_rates.rows_usd == pytest.approx(with_rates.nodes_usd, rel=0.01)
    assert with_rates.unpriced == ()
    assert without.nodes_usd == pytest.approx(3 * _USD, rel=0.02)
    (nodes,) = without.unpriced
    assert (nodes.instance_type, nodes.purchase) == ("g6e.2xlarge", "spot")
    assert nodes.node_hours == pytest.approx(2, rel=0.05)
