"""What a search found, in words and as a page."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import pytest

from inference_blueprints.measure.charts import (
    Crosses,
    Curve,
    Dots,
    Ring,
)
from inference_blueprints.measure.tuning.candidates import TuningCandidate
from inference_blueprints.measure.tuning.coverage import narrow_margins
from inference_blueprints.measure.tuning.evaluation import Evaluation
from inference_blueprints.measure.tuning.tune import Stores, Tuning, tune
from inference_blueprints.measure.tuning.tuning_page import frontier, plots, tuning_page
from inference_blueprints.measure.tuning.tuning_text import (
    as_dict,
    describe_configuration,
    describe_effort,
    describe_search,
    explain_choice,
    rank_configurations,
)
from inference_blueprints.spec.types import EACH_TOKEN, FIRST_TOKEN, Blueprint, Objectives
from inference_contracts.errors import UserError
from tests.unit.measure.tuning.conftest import Silent

VLLM = ["vllm"]


@pytest.fixture(scope="module")
def found(blueprint_of: Callable[..., Blueprint], stores: Stores) -> Tuning:
    return tune(blueprint_of(), 0, Silent(), max_accelerators=4, engines_looked_at=VLLM, stores=stores)


def best_of(found: Tuning) -> Evaluation:
    assert found.best is not None
    return found.best


def test_the_choice_is_explained_in_two_sentences(found: Tuning) -> None:
    text = explain_choice(found)
    assert len(re.findall(r"\.(?= |$)", text)) == 2
    assert "simulated" in text
    assert f"{found.usd_per_million_tokens(best_of(found)):.3f} USD per million tokens" in text
    assert "aggregated" in text
    assert "disaggregated" in text


def test_of_equal_costs_the_simplest_comes_first(found: Tuning) -> None:
    best = best_of(found)
    assert best.candidate.shape.is_aggregated, "fewer parts"
    rivals = [each for each in found.evaluations if each.keeps and not each.candidate.shape.is_aggregated]
    same = replace(rivals[0], cost=best.cost)
    said = explain_choice(replace(found, evaluations=(best, same)))
    assert "costs the same, uses as many accelerators and has more parts" in said
    dearer = replace(rivals[0], cost=replace(best.cost, accelerators=best.cost.accelerators + 1))
    said = explain_choice(replace(found, evaluations=(best, dearer)))
    assert f"accelerators, not {best.cost.accelerators}" in said


def test_the_table_ranks_those_that_keep_the_objectives(found: Tuning) -> None:
    rows = rank_configurations(found).rows
    assert rows[0][0] == "1"
    assert [row[0] for row in rows] == sorted(
        (row[0] for row in rows), key=lambda place: (place == "-", place)
    )
    for row, each in zip(rows, found.evaluations, strict=True):
        assert ("*" in "".join(row)) == (not each.keeps)


def test_without_a_choice_the_nearest_is_named(
    blueprint_of: Callable[..., Blueprint], stores: Stores, progress: Silent
) -> None:
    tight = blueprint_of({"timePerOutputTokenP90Ms: 60": "timePerOutputTokenP90Ms: 8"})
    found = tune(tight, 0, progress, max_accelerators=1, engines_looked_at=VLLM, stores=stores)
    assert found.best is None
    assert explain_choice(found).startswith(
        "No configuration that fits the pools serves 6 requests/s within the objectives"
    )
    assert "The closest is 1x1 h200, which misses the time per output token" in explain_choice(found)
    assert as_dict(found)["best"] is None


def test_an_objective_that_is_assumed_is_said(
    blueprint_of: Callable[..., Blueprint], stores: Stores, progress: Silent
) -> None:
    half = blueprint_of({", timePerOutputTokenP90Ms: 60": ""})
    found = tune(half, 0, progress, max_accelerators=4, engines_looked_at=VLLM, stores=stores)
    assert [each.limit_ms for each in found.objectives] == [1000, 50]
    assert any("no objective for the time per output token" in note for note in found.notes)


@pytest.mark.parametrize(
    ("first", "each", "said"),
    [
        (0.5, 0.5, []),
        (0.97, 0.5, ["the time to first token p90 by only 3.0%"]),
        (0.5, 0.98, ["the time per output token p90 by only 2.0%"]),
        (
            0.99,
            0.99,
            ["first token p90 by only 1.0%", "output token p90 by only 1.0%"],
        ),
    ],
)
def test_an_objective_that_is_kept_by_a_hair_is_said(
    first: float, each: float, said: list[str], found: Tuning
) -> None:
    best = best_of(found)
    wanted = Objectives(
        time_to_first_token_p90_ms=best.percentile_ms(FIRST_TOKEN, 90) / first,
        time_per_output_token_p90_ms=best.percentile_ms(EACH_TOKEN, 90) / each,
    )
    notes = list(narrow_margins(replace(best, objectives=wanted.stated)))
    assert len(notes) == len(said)
    assert all(words in note for words, note in zip(said, notes, strict=True))


def test_own_workers_that_no_profile_is_of_are_named(
    found: Tuning, blueprint_of: Callable[..., Blueprint], stores: Stores, progress: Silent
) -> None:
    said = "with pipeline, data or expert parallelism, were not compared"
    own = "{pool: l40s, replicas: 2, tensorParallelSize: 1}"
    split = "{pool: h200, replicas: 2, tensorParallelSize: 1, pipelineParallelSize: 2}"
    other = tune(
        blueprint_of({own: split}), 0, progress, max_accelerators=2, engines_looked_at=VLLM, stores=stores
    )
    assert any(said in note for note in other.notes)
    assert not any(said in note for note in found.notes)


def test_what_has_no_speeds_is_said(found: Tuning) -> None:
    assert "no latency profile for Qwen/Qwen3-8B on 2 x h200 (vllm): not recorded here" in found.notes


def test_a_type_that_was_not_measured_is_refused(
    blueprint_of: Callable[..., Blueprint], stores: Stores, progress: Silent
) -> None:
    argument = "kv-cache-dtype: fp8"
    other = blueprint_of({"engine: {vllm: {}}": f"engine: {{vllm: {{args: {{{argument}}}}}}}"})
    with pytest.raises(UserError, match=f"got {argument}; the latency profiles were recorded with"):
        tune(other, 0, progress, stores=stores)
    assert progress.replayed == []


def test_the_page_shows_each_latency_against_cost(found: Tuning) -> None:
    page = tuning_page(found)
    assert page.count("<svg") == 2
    assert page.count("<circle") <= 2 * (len(found.evaluations) + 1)
    assert page.count(">choice</text>") == 2
    assert "objective p90 60 ms" in page
    assert describe_search(found).replace("&", "&amp;") in page
    assert re.search(r"<script|https?://(?!www\.w3\.org)", page) is None


def test_dots_keep_the_objectives_and_crosses_miss_one(found: Tuning) -> None:
    keeping = [each for each in found.evaluations if each.keeps]
    assert 0 < len(keeping) < len(found.evaluations)
    for plot in plots(found):
        [dots] = [layer for layer in plot.layers if isinstance(layer, Dots)]
        [crosses] = [layer for layer in plot.layers if isinstance(layer, Crosses)]
        [curve] = [layer for layer in plot.layers if isinstance(layer, Curve)]
        [ring] = [layer for layer in plot.layers if isinstance(layer, Ring)]
        assert len(dots.points) == len(keeping)
        assert len(crosses.points) <= len(found.evaluations) - len(keeping)
        assert set(curve.points) <= set(dots.points), "what misses is no choice"
        assert ring.point in dots.points


def test_without_a_choice_none_is_marked(
    blueprint_of: Callable[..., Blueprint], stores: Stores, progress: Silent
) -> None:
    tight = blueprint_of({"timePerOutputTokenP90Ms: 60": "timePerOutputTokenP90Ms: 8"})
    found = tune(tight, 0, progress, max_accelerators=1, engines_looked_at=VLLM, stores=stores)
    assert "choice</text>" not in tuning_page(found)
    assert "Dots meet all objectives (0)" in tuning_page(found)


def test_the_frontier_holds_what_no_other_beats() -> None:
    points = [(1.0, 9.0), (2.0, 5.0), (3.0, 6.0), (4.0, 1.0), (4.0, 2.0)]
    assert frontier(points) == [(1.0, 9.0), (2.0, 5.0), (4.0, 1.0)]


def test_large_numbers_have_separators() -> None:
    counts = SimpleNamespace(replays=12345, from_cache=6789, left_out=1, shapes=2345)
    effort = describe_effort(cast(Tuning, counts))
    assert effort.startswith("12,345 replays, 6,789 results from the cache; 1 of 2,345 kinds")
    shape = SimpleNamespace(roles=(SimpleNamespace(tensor_parallel_size=8, pool="h200"),))
    candidate = cast(TuningCandidate, SimpleNamespace(replicas=(1500,), shape=shape))
    assert describe_configuration(candidate) == "1,500x8 h200"
