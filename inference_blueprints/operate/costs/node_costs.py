"""What nodes cost in a time, by model: at recorded prices, or at the rates of the user's own file."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from inference_blueprints.operate.costs.recorded_values import HOURS_PER_STEP, RecordedValues, Values
from inference_blueprints.render.monitoring.cost_shares import PoolHour, model_costs

#: Takes the pool, the instance type and Karpenter's capacity type of a node; None if its price is not known.
RateOfNode = Callable[[str, str, str], float | None]

_NODE_LABELS: Final = ("pool", "instance_type", "purchase")


@dataclass(frozen=True, slots=True, kw_only=True)
class UnpricedNodes:
    """Nodes that ran and whose price is not known. Their cost is in no sum.

    Parameters
    ----------
    pool, instance_type
        Name of the pool and EC2 instance type.
    purchase
        Karpenter's capacity type: ``on-demand``, ``spot`` or ``reserved``.
    node_hours
        Nodes times hours.
    """

    pool: str
    instance_type: str
    purchase: str
    node_hours: float


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeCosts:
    """The cost of the nodes with a known price, and the nodes without one.

    Parameters
    ----------
    usd_by_model
        US dollars by model, and under ``unattributed`` those of GPUs that no worker held.
    nodes_usd
        US dollars of the nodes with a known price.
    hours_with_nodes
        Hours in which CloudWatch has a cost of nodes.
    unpriced
        Nodes without a known price.
    """

    usd_by_model: Mapping[str, float]
    nodes_usd: float
    hours_with_nodes: float
    unpriced: tuple[UnpricedNodes, ...]


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

    Parameters
    ----------
    recorded
        The recorded series of the platform.
    rate
        The price of a node.
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
