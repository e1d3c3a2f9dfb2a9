"""Costs of models and teams sum to the price of the nodes, and nothing is guessed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference_blueprints.render.monitoring.cost_shares import (
    UNATTRIBUTED,
    PoolHour,
    model_costs,
    team_costs,
    usd_per_million_tokens,
)

_AMOUNTS = st.floats(0, 10_000)
_POOLS = st.builds(
    PoolHour,
    usd=_AMOUNTS,
    gpus=st.integers(0, 512).map(float),
    held=st.dictionaries(st.sampled_from("abc"), st.integers(0, 256).map(float)),
)


def test_idle_gpus_belong_to_nobody() -> None:
    costs = model_costs([PoolHour(usd=80, gpus=8, held={"a": 4, "b": 1})])
    assert costs == {"a": 40, "b": 10, UNATTRIBUTED: 30}


def test_a_callers_team_is_not_guessed() -> None:
    assert team_costs(100, 1000, {"ads": 250}) == {"ads": 25, UNATTRIBUTED: 75}
    assert team_costs(100, 0, {}) == {UNATTRIBUTED: 100}
    assert usd_per_million_tokens(10, 2_000_000) == 5
    assert usd_per_million_tokens(10, 0) is None


@given(st.lists(_POOLS))
def test_models_sum_to_the_nodes(pools: list[PoolHour]) -> None:
    assert sum(model_costs(pools).values()) == pytest.approx(sum(pool.usd for pool in pools), rel=1e-6)


@given(_AMOUNTS, _AMOUNTS, st.dictionaries(st.sampled_from("abc"), _AMOUNTS))
def test_teams_sum_to_the_model(usd: float, all_tokens: float, tokens: dict[str, float]) -> None:
    assert sum(team_costs(usd, all_tokens, tokens).values()) == pytest.approx(usd, rel=1e-6, abs=1e-9)
