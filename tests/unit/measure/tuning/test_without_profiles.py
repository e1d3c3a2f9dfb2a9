"""Models on pools that nobody measured: there is no choice, but the comparison with other instances."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from inference_blueprints.loading import load_blueprint
from inference_blueprints.measure.tuning.tune import Stores, Tuning, tune
from inference_blueprints.measure.tuning.tuning_page import tuning_page
from inference_blueprints.measure.tuning.tuning_text import as_dict, explain_choice
from inference_blueprints.spec.types import Blueprint
from tests.unit.measure.tuning.conftest import Silent

VLLM = ["vllm"]


@pytest.fixture(scope="module")
def tuned(stores: Stores) -> Callable[[str], Tuning]:
    """Return a function that tunes a shipped blueprint, once."""

    @cache
    def search(name: str) -> Tuning:
        return tune(load_blueprint(name).blueprint, 0, Silent(), stores=stores)

    return search


def test_a_model_without_speeds_gets_no_choice_and_the_reasons(
    blueprint_of: Callable[..., Blueprint], stores: Stores, progress: Silent
) -> None:
    unknown = blueprint_of({"Qwen/Qwen3-8B": "Qwen/Qwen3-VL-8B-Instruct"})
    found = tune(unknown, 0, progress, engines_looked_at=VLLM, stores=stores)
    assert (found.best, found.covered, progress.replayed) == (None, 0, [])
    reason = "no latency profile for Qwen/Qwen3-VL-8B-Instruct on 1 x l40s (vllm): not recorded here"
    assert reason in found.notes
    assert all(note.startswith("no latency profile for") for note in found.notes)


def test_pools_that_hold_no_worker_are_the_reason_and_not_a_missing_profile(
    blueprint_of: Callable[..., Blueprint], stores: Stores, progress: Silent
) -> None:
    on_h200 = {
        "pool: l40s, replicas: 2, tensorParallelSize: 1": "pool: h200, replicas: 2, tensorParallelSize: 4"
    }
    large = blueprint_of({"Qwen/Qwen3-8B": "Qwen/Qwen3-32B", **on_h200})
    spec = large.spec.model_copy(update={"pools": large.spec.pools[:1]})
    found = tune(large.model_copy(update={"spec": spec}), 0, progress, engines_looked_at=VLLM, stores=stores)
    assert "no configuration on these pools is valid" in explain_choice(found)
    assert "latency profile" not in explain_choice(found)


def test_requests_beyond_the_profiles_get_no_choice_and_the_reason(
    blueprint_of: Callable[..., Blueprint], stores: Stores, progress: Silent, tmp_path: Path
) -> None:
    """Bug: replays drew a line beyond the table's end, and the choice rested on it."""
    long = blueprint_of(
        {"inputTokens: 2000": "inputTokens: 20000", "peakRequestsPerSecond: 6": "peakRequestsPerSecond: 1"}
    )
    found = tune(long, 0, progress, max_accelerators=1, engines_looked_at=VLLM, stores=stores)
    assert (found.best, found.covered, progress.replayed) == (None, 0, [])
    ends = "the latency profile ends at 16,384 tokens of a prompt, and"
    assert f"not compared: Qwen/Qwen3-8B on 1 x l40s (vllm): {ends} a mean prompt has 20,000" in found.notes
    assert "covers its requests" in explain_choice(found)
    # Workers of prompts of 5,000 tokens accept one of 20,000.
    trace = tmp_path / "trace.csv"
    trace.write_text("TIMESTAMP,input,output\n0,5000,100\n1,20000,100\n", encoding="utf-8")
    short = blueprint_of(
        {"inputTokens: 2000": "inputTokens: 5000", "peakRequestsPerSecond: 6": "peakRequestsPerSecond: 1"}
    )
    found = tune(short, 0, progress, trace=trace, max_accelerators=1, engines_looked_at=VLLM, stores=stores)
    assert progress.replayed == []
    assert (
        f"not compared: Qwen/Qwen3-8B on 1 x l40s (vllm): {ends} the longest prompt has 20,000" in found.notes
    )


@pytest.mark.parametrize(
    ("name", "missing", "simulated", "published"),
    [
        ("inf2", "meta-llama/Llama-3.1-8B-Instruct on inferentia2 (vllmNeuron)", "g6e", "inf2"),
        ("trn2", "meta-llama/Llama-3.3-70B-Instruct on trainium2 (vllmNeuron)", "p5en", "c8g"),
        ("graviton-llama-cpp", "Qwen/Qwen3-4B in Q4_K_M on graviton4 (llamaCpp)", "g6e", None),
    ],
)
def test_a_pool_that_nobody_measured_still_shows_the_price_on_other_instances(
    name: str, missing: str, simulated: str, published: str | None, tuned: Callable[[str], Tuning]
) -> None:
    """Bug: the search ended with an error, so whoever has such a pool never saw the comparison."""
    found = tuned(name)
    assert found.best is None
    assert found.notes == (f"no latency profile for {missing}: not recorded here",)
    speeds = {each.family: each.speed for each in found.others}
    assert speeds[simulated] == "simulated"
    assert published is None or speeds[published] == "published"
    assert explain_choice(found).startswith("Nothing was replayed and nothing is recommended")
    assert as_dict(found)["best"] is None


def test_the_page_has_no_empty_parts(tuned: Callable[[str], Tuning]) -> None:
    page = tuning_page(tuned("inf2"))
    assert "The same model on other instances" in page
    for part in ("Replayed configurations", "Cost against latency", "0 replays"):
        assert part not in page


def test_the_speed_of_a_model_with_the_same_shape_is_named(tuned: Callable[[str], Tuning]) -> None:
    """Llama 3.3 70B has the layers and sizes of 3.1, of which there are profiles."""
    [row] = [each for each in tuned("trn2").others if each.family == "p5en"]
    assert "at the speed of meta-llama/Llama-3.1-70B-Instruct" in row.origin


def test_a_gpu_is_compared_with_the_published_weights(tuned: Callable[[str], Tuning]) -> None:
    [row] = [each for each in tuned("graviton-llama-cpp").others if each.family == "g6e"]
    assert "with the weights of Qwen/Qwen3-4B and not those of the GGUF file" in row.origin
