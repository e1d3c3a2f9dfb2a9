"""At the user's own rates, the rows sum to the nodes, and nodes without a rate are named."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference_blueprints.loading import load_blueprint
from inference_blueprints.operate.attributed_costs import (
    IDLE,
    AttributedCosts,
    UnpricedNodes,
    attributed_costs,
)
from inference_blueprints.render.monitoring.cost_shares import UNATTRIBUTED
from inference_blueprints.report.pricing.rates import CustomRates, node_rate, pools_without_price, prices_for
from inference_blueprints.spec.types import Purchase
from inference_decisions.promql.cloudwatch_promql import MetricSeries

START = datetime(2026, 11, 1, tzinfo=UTC)
_POOL, _TYPE = "l40s", "g6e.2xlarge"
#: Nodes by instance type and capacity type, each with one GPU.
_NODES = {(_TYPE, "spot"): 3.0, (_TYPE, "on-demand"): 1.0}


def _costs(nodes: Mapping[tuple[str, str], float], rates: Mapping[tuple[str, str], float]) -> AttributedCosts:
    def ask(expression: str, start: float, end: float, step: float) -> tuple[MetricSeries, ...]:
        times = [start + number * step for number in range(int((end - start) / step) + 1)]

        def steady(labels: dict[str, str], value: float) -> MetricSeries:
            return MetricSeries(labels, tuple((at, value) for at in times))

        if "pool_nodes" in expression:
            return tuple(
                steady({"pool": _POOL, "instance_type": kind, "purchase": purchase}, count)
                for (kind, purchase), count in nodes.items()
            )
        if "pool_gpus" in expression:
            return (steady({"pool": _POOL}, sum(nodes.values())),)
        if "serving_gpus" in expression:
            return (steady({"pool": _POOL, "model": "chat"}, 2.0),)
        return (steady({"model": "chat"}, 100.0),)

    pools = load_blueprint("quickstart-g6e").blueprint.spec.pools
    own = CustomRates(region="us-east-1", date="2026-11-01", source="a contract", usd_per_hour=rates)
    return attributed_costs(
        ask,
        "chat",
        batch={},
        start=START,
        end=START + timedelta(hours=2),
        rate=node_rate(prices_for("us-east-1", own), pools),
    )


def test_each_purchase_has_its_own_rate() -> None:
    found = _costs(_NODES, {(_TYPE, "spot"): 0.9, (_TYPE, "onDemand"): 2.0})
    assert found.nodes_usd == pytest.approx(2 * (3 * 0.9 + 2.0))
    rows = {(row.model, row.team): row.usd for row in found.rows}
    assert rows["chat", UNATTRIBUTED] == pytest.approx(found.nodes_usd / 2), "two of four GPUs"
    assert rows[IDLE, ""] == pytest.approx(found.nodes_usd / 2)
    assert found.unpriced == ()


def test_nodes_without_a_rate_are_named_and_in_no_sum() -> None:
    found = _costs(_NODES, {(_TYPE, "onDemand"): 2.0})
    assert found.nodes_usd == pytest.approx(2 * 2.0)
    assert found.rows_usd == pytest.approx(found.nodes_usd)
    assert found.unpriced == (
        UnpricedNodes(
            pool=_POOL, instance_type=_TYPE, purchase="spot", node_hours=cast("float", pytest.approx(6.0))
        ),
    )


def test_a_platform_whose_nodes_all_lack_a_rate_costs_nothing_known() -> None:
    found = _costs({(_TYPE, "spot"): 3.0}, {(_TYPE, "onDemand"): 2.0})
    assert (found.nodes_usd, found.hours_with_nodes) == (0.0, 0.0)
    assert [each.node_hours for each in found.unpriced] == [pytest.approx(6.0)]


counts = st.floats(0, 500)


@given(st.dictionaries(st.sampled_from([*_NODES, (_TYPE, "reserved")]), counts), counts, counts)
def test_the_rows_sum_to_the_nodes(
    nodes: dict[tuple[str, str], float], spot: float, on_demand: float
) -> None:
    found = _costs(nodes, {(_TYPE, "spot"): spot, (_TYPE, "onDemand"): on_demand})
    assert found.rows_usd == pytest.approx(found.nodes_usd, rel=0.01, abs=1e-9)


@pytest.mark.parametrize(
    ("purchase", "own", "left_out"),
    [
        ({"spot": {}}, {}, True),
        ({"spot": {}}, {(_TYPE, "spot"): 0.9}, False),
        ({"spot": {"onDemandFallback": True}}, {}, False),
        ({"onDemand": {}}, {}, False),
    ],
)
def test_pools_without_any_price_are_named(
    purchase: dict[str, dict[str, bool]], own: dict[tuple[str, str], float], *, left_out: bool
) -> None:
    (pool,) = load_blueprint("quickstart-g6e").blueprint.spec.pools
    pool = pool.model_copy(update={"purchase": Purchase.model_validate(purchase)})
    rates = CustomRates(region="us-east-1", date="2026-11-01", source="a contract", usd_per_hour=own)
    assert pools_without_price(prices_for("us-east-1", rates), [pool]) == (["l40s"] if left_out else [])
