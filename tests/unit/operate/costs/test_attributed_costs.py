"""What nodes cost is divided among models and teams, and nothing is left out or counted twice."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference_blueprints.operate.attributed_costs import (
    IDLE,
    STEP_SECONDS,
    AttributedCosts,
    attributed_costs,
)
from inference_blueprints.render.monitoring.cost_shares import UNATTRIBUTED
from inference_decisions.promql.cloudwatch_promql import MetricSeries

START = datetime(2026, 11, 1, tzinfo=UTC)


class Recorded:
    """A platform whose figures do not change: US dollars per hour and tokens per second, by model."""

    def __init__(self, usd: dict[str, float], tokens: dict[str, float]) -> None:
        self.usd, self.tokens = usd, tokens
        self.times: list[tuple[datetime, datetime]] = []

    def ask(self, expression: str, start: float, end: float, step: float) -> tuple[MetricSeries, ...]:
        assert '{platform="chat"}' in expression
        times = [start + number * step for number in range(int((end - start) / step) + 1)]
        if "pool_nodes" in expression:
            return ()
        if "pool_usd_per_hour" in expression:
            self.times.append((datetime.fromtimestamp(start, UTC), datetime.fromtimestamp(end, UTC)))
            return (MetricSeries({}, tuple((at, sum(self.usd.values())) for at in times)),)
        figures = self.usd if "model_usd_per_hour" in expression else self.tokens
        return tuple(
            MetricSeries({"model": name}, tuple((at, each) for at in times)) for name, each in figures.items()
        )


def costs(recorded: Recorded, batch: dict[str, dict[str, float]], hours: float = 2) -> AttributedCosts:
    return attributed_costs(
        recorded.ask, "chat", batch=batch, start=START, end=START + timedelta(hours=hours)
    )


def test_a_model_s_cost_is_divided_by_tokens_and_the_rest_is_unattributed() -> None:
    recorded = Recorded({"small": 4.0, UNATTRIBUTED: 1.5}, {"small": 100.0})
    found = costs(recorded, {"small": {"search": 180_000, "ads": 90_000}})
    rows = {(row.model, row.team): row for row in found.rows}
    # 720,000 tokens in two hours.
    assert rows["small", "search"].usd == pytest.approx(8.0 / 4)
    assert rows["small", "ads"].usd == pytest.approx(8.0 / 8)
    assert rows["small", UNATTRIBUTED].usd == pytest.approx(8.0 * 5 / 8)
    assert rows["small", UNATTRIBUTED].output_tokens == pytest.approx(450_000)
    assert rows["small", "ads"].usd_per_million_tokens == pytest.approx(8.0 / 0.72)
    assert rows[IDLE, ""].usd == pytest.approx(3.0)
    assert rows[IDLE, ""].usd_per_million_tokens is None


def test_each_step_is_asked_for_once() -> None:
    recorded = Recorded({"small": 1.0}, {})
    found = costs(recorded, {}, hours=49)
    step = timedelta(seconds=STEP_SECONDS)
    day = timedelta(days=1)
    assert recorded.times == [
        (START + step, START + day),
        (START + day + step, START + 2 * day),
        (START + 2 * day + step, START + 2 * day + timedelta(hours=1)),
    ]
    assert found.nodes_usd == pytest.approx(49.0)
    assert found.hours_with_nodes == pytest.approx(found.hours)


def test_a_time_without_metrics_is_seen() -> None:
    found = attributed_costs(lambda *_: (), "chat", batch={}, start=START, end=START + timedelta(hours=2))
    assert (found.nodes_usd, found.hours, found.hours_with_nodes) == (0.0, 2.0, 0.0)


figures = st.floats(0, 1000)
names = st.sampled_from(["small", "large", UNATTRIBUTED])


@given(st.dictionaries(names, figures), st.dictionaries(names, figures), st.dictionaries(names, figures))
def test_the_rows_sum_to_the_nodes(
    usd: dict[str, float], tokens: dict[str, float], batch: dict[str, float]
) -> None:
    """Also if jobs that began earlier end with more tokens than the time had."""
    tokens.pop(UNATTRIBUTED, None)
    found = costs(Recorded(usd, tokens), {model: {"search": 1e5 * each} for model, each in batch.items()})
    assert found.rows_usd == pytest.approx(found.nodes_usd, rel=1e-6, abs=1e-9)
    assert all(row.usd >= 0 for row in found.rows)
