"""Who the nodes' price belongs to: models by the GPUs that their workers hold, teams by their tokens."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Final

from inference_contracts.records import dataclass

#: What no model holds, and what no known team asked for.
UNATTRIBUTED: Final = "unattributed"


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolHour:
    """An hour of a pool."""

    usd: float
    """Price of its nodes in the hour, in US dollars."""
    gpus: float
    """GPUs of its nodes."""
    held: Mapping[str, float]
    """GPUs that the workers of each model held."""


def model_costs(pools: Sequence[PoolHour]) -> Mapping[str, float]:
    """Return US dollars by model, and under `UNATTRIBUTED` the price of GPUs that no worker held.

    The sum is the price of the nodes. If workers hold more GPUs than the exporter counts, as on a new node,
    their shares become smaller, not the sum larger.

    pools: The pools' hours.
    """
    costs: dict[str, float] = defaultdict(float)
    for pool in pools:
        total = max(pool.gpus, sum(pool.held.values()))
        for model, gpus in pool.held.items():
            costs[model] += pool.usd * gpus / total if total else 0.0
        rest = total - sum(pool.held.values())
        costs[UNATTRIBUTED] += pool.usd * (rest / total if total else 1.0)
    return dict(costs)


def team_costs(usd: float, all_tokens: float, tokens: Mapping[str, float]) -> Mapping[str, float]:
    """Return US dollars by team, and under `UNATTRIBUTED` those of tokens whose caller is not known.

    usd: Cost of a model.
    all_tokens: Tokens that the model generated.
    tokens: Those of them whose team is known, such as those of batch jobs. Calls of the OpenAI API carry no
        team.
    """
    total = max(all_tokens, sum(tokens.values()))
    if not total:
        return {UNATTRIBUTED: usd}
    costs = {team: usd * count / total for team, count in tokens.items()}
    return {**costs, UNATTRIBUTED: usd * (total - sum(tokens.values())) / total}


def usd_per_million_tokens(usd: float, tokens: float) -> float | None:
    """Return US dollars per million tokens, or None without tokens."""
    return usd / tokens * 1_000_000 if tokens else None
