"""What `tune` printed, read again."""

import json
from pathlib import Path
from typing import Any

import pytest

from inference_blueprints.loading import load_blueprint
from inference_blueprints.measure.benchmarking.benchmark_text import read_tuned
from inference_blueprints.serving.traffic import own_means
from inference_blueprints.spec.types import EACH_TOKEN, FIRST_TOKEN, Model, Workload
from inference_contracts.errors import UserError

# Of `blueprints tune quickstart-g6e --output json`, without what is not read.
TUNE = {
    "model": "qwen3-8b",
    "demand": {
        "inputTokens": 3000,
        "outputTokens": 200,
        "sharedPrefixRatio": 0.0,
        "peakRequestsPerSecond": 2.0,
    },
    "best": {
        "engine": "vllm",
        "deployments": [
            {"name": "main", "aggregated": {"pool": "l40s", "replicas": 2, "tensorParallelSize": 1}}
        ],
        "accelerators": 2,
        "usdPerHour": 4.48416,
        "usdPerMillionTokens": 0.194625,
        "timeToFirstTokenP90Ms": 489.05,
        "timePerOutputTokenP90Ms": 47.05,
    },
}


def model() -> Model:
    return load_blueprint("quickstart-g6e").blueprint.spec.models[0]


def written(folder: Path, document: Any) -> Path:
    path = folder / "tune.json"
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    return path


def test_the_best_configuration_is_read_and_the_same_one_needs_no_word(tmp_path: Path) -> None:
    tuned = read_tuned(written(tmp_path, TUNE), model(), own_means(model()))
    assert (tuned.engine, tuned.accelerators, tuned.usd_per_hour) == ("vllm", 2, 4.48416)
    assert tuned.latencies_ms == {(FIRST_TOKEN, 90): 489.05, (EACH_TOKEN, 90): 47.05}
    assert tuned.notes == ()


def test_another_demand_and_another_configuration_are_said(tmp_path: Path) -> None:
    best = json.loads(json.dumps(TUNE["best"]))
    best["deployments"][0]["aggregated"]["replicas"] = 3
    asked = Workload(input_tokens=3000, output_tokens=100, peak_requests_per_second=4)
    demand, layout = read_tuned(written(tmp_path, {**TUNE, "best": best}), model(), asked).notes
    assert demand == (
        "The search used another workload: 2 requests/s instead of 4, 200 answer tokens instead of 100."
    )
    assert "differs from the blueprint's" in layout


def test_a_rate_that_is_nearly_the_same_is_the_same(tmp_path: Path) -> None:
    asked = Workload(input_tokens=2950, output_tokens=200, peak_requests_per_second=2.1)
    assert read_tuned(written(tmp_path, TUNE), model(), asked).notes == ()


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ("{", "cannot be read as a search of tune"),
        ([], "cannot be read as a search of tune"),
        ({"model": "qwen3-8b"}, "cannot be read as a search of tune"),
        ({**TUNE, "best": {"engine": "vllm"}}, "cannot be read as a search of tune"),
        ({**TUNE, "model": "llama"}, "is a search for llama, but the benchmark measures qwen3-8b"),
        ({**TUNE, "best": None}, "found no configuration that meets the objectives"),
    ],
)
def test_what_is_no_search_for_this_model_is_an_error(document: Any, words: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=rf"--against: .*tune\.json: .*{words}"):
        read_tuned(written(tmp_path, document), model(), own_means(model()))


def test_a_file_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no\.json: cannot be read"):
        read_tuned(tmp_path / "no.json", model(), own_means(model()))
