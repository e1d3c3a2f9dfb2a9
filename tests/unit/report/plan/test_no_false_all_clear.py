"""Drawn blueprints: the plan never says that something holds while its own figures say otherwise."""

from __future__ import annotations

import copy
import re
from typing import Any

import yaml
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from inference_blueprints.report.plan.plan_tables import plan_tables
from inference_blueprints.report.plan.short_plan import headline, short_lines, warnings_of
from inference_blueprints.report.plan.summary import as_dict, summarise
from inference_blueprints.resources import blueprints_directory
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.spec.types import Blueprint

#: Elastic workers, a queue with a load, a team, objectives and a capacity shift.
_DOCUMENT = yaml.safe_load((blueprints_directory() / "capacity-and-health.yaml").read_text(encoding="utf-8"))

DRAWN = st.fixed_dictionaries(
    {
        "workload": st.fixed_dictionaries(
            {
                "inputTokens": st.sampled_from([100, 1000, 3000, 8000]),
                "outputTokens": st.sampled_from([1, 20, 200, 800]),
                "peakRequestsPerSecond": st.sampled_from([0.1, 2, 12, 40, 300]),
            }
        ),
        "objectives": st.fixed_dictionaries(
            {
                "timeToFirstTokenP90Ms": st.sampled_from([50, 300, 2000]),
                "timePerOutputTokenP90Ms": st.sampled_from([5, 30, 50, 200]),
            }
        ),
        "deadlineHours": st.sampled_from([0.1, 1, 24, 200]),
        "load": st.fixed_dictionaries(
            {
                "requestsPerDay": st.sampled_from([1000, 100_000, 3_000_000]),
                "requestsPerJob": st.sampled_from([1000, 100_000, 3_000_000]),
            }
        ),
        "budget": st.sampled_from([10, 1000, 1_000_000]),
        "workers": st.sampled_from([1, 100]),
    }
)


# Without looking for a smaller example: a failure then took minutes.
@settings(max_examples=40, phases=(Phase.generate,))
@given(DRAWN)
def test_no_figure_contradicts_what_the_plan_says(drawn: dict[str, Any]) -> None:
    document = copy.deepcopy(_DOCUMENT)
    spec = document["spec"]
    spec["models"][0].update(workload=drawn["workload"], objectives=drawn["objectives"])
    spec["batch"]["queues"][0].update(load=drawn["load"], deadlineHours=drawn["deadlineHours"])
    spec["batch"]["workers"] = {"min": 1, "max": drawn["workers"]}
    spec["teams"][0]["monthlyBudgetUsd"] = drawn["budget"]
    blueprint = Blueprint.model_validate(document)
    summary = summarise(blueprint, build_plan(blueprint))
    figures, warnings = as_dict(summary), [each.message for each in warnings_of(summary, "x.yaml")]

    def is_warned(words: str) -> bool:
        return any(words in each for each in warnings)

    [price] = figures["tokenPrices"]
    is_carried = price["requestsPerSecond"] >= price["peakRequestsPerSecond"]
    assert is_warned("requests per second at peak (simulated)") is not is_carried
    for check in figures["objectives"]:
        assert check["isMissed"] is not False, "nothing was replayed"
        if check["plannedMs"] > 1.1 * check["objectiveMs"]:
            assert check["isMissed"]
    if not is_carried and drawn["objectives"]["timeToFirstTokenP90Ms"] < 1000 * 54 * (
        price["peakRequestsPerSecond"] / price["requestsPerSecond"] - 1
    ):
        assert is_warned("misses its time to first token")

    [day] = figures["batchDays"]
    full, planned = day["fullRequestsPerSecond"], day["plannedRequestsPerSecond"]
    assert planned <= full
    hours = [day["requestsPerJob"] / rate / 3600 for rate in (full, planned)]
    assert is_warned("Queue nightly") is (max(hours) > drawn["deadlineHours"])
    assert is_warned("does not keep up") is (day["loadRequestsPerSecond"] > full)

    cost, budgets = figures["platformCost"], figures["budgets"]
    assert cost["usdPerMonthLeast"] <= cost["usdPerMonth"]
    assert ("at least" in headline(summary)) is bool(cost["notPriced"])
    assert is_warned("not the platform's") is (drawn["budget"] < cost["usdPerMonthLeast"])
    assert is_warned("refuse a part of the load") is (drawn["budget"] < budgets["loadUsdPerMonth"])

    shown = [text for _, text in short_lines(summary, "x.yaml")]
    shown += [text for each in plan_tables(summary) for text in (*each.notes, *map(" ".join, each.rows))]
    assert re.findall(r"not missed|kept by|\bmet\b(?! is)|can hold", " ".join(shown)) == []
