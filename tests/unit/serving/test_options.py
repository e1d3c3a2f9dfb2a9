"""Options of a model: the arguments that engines get, and the memory that they take."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

import inference_catalog as catalog
from inference_blueprints.serving.checks.memory_checks import memory_findings
from inference_blueprints.serving.checks.serving_checks import serving_findings
from inference_blueprints.serving.engines import ENGINES
from inference_blueprints.serving.engines.worker_sizing import worker_memory
from inference_blueprints.serving.estimates.memory_estimate import MemoryEstimate
from inference_blueprints.serving.performance import speeds
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.serving.resolved import resolve
from inference_blueprints.spec.types import Blueprint
from inference_catalog.cache_rules import request_bytes

Make = Callable[..., Blueprint]

LLAMA = {
    "huggingFace": "acme/Llama-3.3-70B-FP8",
    "catalog": "meta-llama/Llama-3.3-70B-Instruct",
    "type": "fp8",
}
DEEPSEEK: dict[str, Any] = {
    "instance_types": ["p5en.48xlarge"],
    "weights": {"huggingFace": "deepseek-ai/DeepSeek-V3.2", "revision": "main"},
    "aggregated": {"tensorParallelSize": 8},
}
GPT_OSS: dict[str, Any] = {
    "instance_types": ["p5.48xlarge"],
    "weights": {"huggingFace": "openai/gpt-oss-20b", "revision": "main"},
    "workload": {"inputTokens": 9000, "outputTokens": 1000, "peakRequestsPerSecond": 0.1},
}


def arguments(blueprint: Blueprint) -> dict[str, str]:
    words = build_plan(blueprint).models[0].deployments[0].workers[0].arguments
    return {word: following for word, following in itertools.pairwise(words) if word.startswith("--")}


def memory(blueprint: Blueprint) -> MemoryEstimate:
    return worker_memory(resolve(blueprint, 0, 0)[0])


@pytest.mark.parametrize(
    ("engine", "options", "expected"),
    [
        ("vllm", {"kvCacheType": "fp8"}, {"--kv-cache-dtype": "fp8"}),
        ("vllm", {"kvCacheType": "bf16"}, {"--kv-cache-dtype": "bfloat16"}),
        ("sglang", {"kvCacheType": "fp8"}, {"--kv-cache-dtype": "fp8_e4m3"}),
        ("tensorrtLlm", {"kvCacheType": "fp8"}, {"--trtllm.kv_cache_config.dtype": "fp8"}),
        ("vllm", {"quantization": "fp8"}, {"--quantization": "fp8_per_tensor"}),
        ("vllm", {"quantization": "fp8Blocks"}, {"--quantization": "fp8_per_block"}),
        (
            "vllm",
            {"speculation": {"nGram": {"tokens": 4}}},
            {"--speculative-config": '{"method":"ngram","num_speculative_tokens":4}'},
        ),
    ],
)
def test_an_option_is_an_argument_of_the_engine(
    engine: str, options: dict[str, Any], expected: dict[str, str], make_blueprint: Make
) -> None:
    blueprint = make_blueprint(engine={engine: {}}, **options)
    assert not [each for each in serving_findings(blueprint) if each.severity == "error"]
    assert expected.items() <= arguments(blueprint).items()
    assert expected.keys() <= catalog.engine(engine).flags.keys()
    assert not expected.keys() & arguments(make_blueprint(engine={engine: {}})).keys()


@pytest.mark.parametrize(
    ("engine", "expected"),
    [
        ("vllm", {"--speculative-config": '{"method":"mtp","num_speculative_tokens":2}'}),
        (
            "sglang",
            {
                "--speculative-algorithm": "EAGLE",
                "--speculative-num-steps": "2",
                "--speculative-eagle-topk": "1",
                "--speculative-num-draft-tokens": "3",
            },
        ),
    ],
)
def test_layers_that_guess_take_memory(engine: str, expected: dict[str, str], make_blueprint: Make) -> None:
    plain = make_blueprint(engine={engine: {}}, **DEEPSEEK)
    guessing = make_blueprint(engine={engine: {}}, speculation={"mtp": {"tokens": 2}}, **DEEPSEEK)
    assert not [each for each in serving_findings(guessing) if each.severity == "error"]
    assert expected.items() <= arguments(guessing).items()
    more = memory(guessing).weights_bytes - memory(plain).weights_bytes
    published = catalog.model("deepseek-ai/DeepSeek-V3.2").prediction_weight_bytes
    assert more == pytest.approx(published / 8, rel=0.001)
    assert memory(guessing).kv_bytes_per_token == memory(plain).kv_bytes_per_token * 62 / 61


def test_guesses_from_the_prompt_take_none(make_blueprint: Make) -> None:
    guessing, plain = memory(make_blueprint(speculation={"nGram": {}})), memory(make_blueprint())
    assert (guessing.kv_cache_bytes, guessing.kv_tokens) == (plain.kv_cache_bytes, plain.kv_tokens)


def test_a_smaller_cache_holds_twice_the_tokens(make_blueprint: Make) -> None:
    plain, smaller = memory(make_blueprint()), memory(make_blueprint(kvCacheType="fp8"))
    assert smaller.kv_tokens == pytest.approx(2 * plain.kv_tokens, abs=1)


def test_weights_that_are_quantised_while_they_are_loaded_take_half(make_blueprint: Make) -> None:
    plain, smaller = memory(make_blueprint()), memory(make_blueprint(quantization="fp8"))
    saved = plain.weights_bytes - smaller.weights_bytes
    assert saved == pytest.approx(catalog.model("Qwen/Qwen3-8B").matrix_parameters, rel=0.001)


def test_llama_in_fp8_fits_two_h100(make_blueprint: Make) -> None:
    """As NVIDIA's FP8 export of the same shape, which the catalogue has with its own configuration."""
    shape = {"instance_types": ["p5.48xlarge"], "aggregated": {"tensorParallelSize": 2}}
    blueprint = make_blueprint(weights=LLAMA, **shape)
    assert not [each for each in serving_findings(blueprint) if each.severity == "error"]
    export = catalog.model("nvidia/Llama-3.1-70B-Instruct-FP8")
    assert resolve(blueprint, 0, 0)[0].shape.weight_bytes == export.weight_bytes
    whole = make_blueprint(weights={key: LLAMA[key] for key in ("huggingFace", "catalog")}, **shape)
    assert [each for each in serving_findings(whole) if each.severity == "error"]


@pytest.mark.parametrize(
    "options",
    [{"kvCacheType": "fp8"}, {"quantization": "fp8"}, {"speculation": {"nGram": {}}}],
    ids=lambda options: next(iter(options)),
)
def test_a_speed_with_an_option_is_unknown(options: dict[str, Any], make_blueprint: Make) -> None:
    assert speeds(resolve(make_blueprint(), 0, 0)[0]) is not None
    assert speeds(resolve(make_blueprint(**options), 0, 0)[0]) is None


def test_vllm_keeps_only_the_window_of_a_request(make_blueprint: Make) -> None:
    """Half of the layers of gpt-oss see 128 tokens; one more block of 64 is kept."""
    freed = memory(make_blueprint(**GPT_OSS)).kv_bytes_per_token
    whole = catalog.model("openai/gpt-oss-20b").kv_bytes_per_token()
    blocks = 64 * -(-10_000 // 64)
    assert freed == pytest.approx(whole * (0.5 * blocks + 0.5 * 192) / 10_000)


@pytest.mark.parametrize(
    "changes",
    [
        {"kvCache": {"hostMemoryGib": 16}},
        {"engine": {"vllm": {"args": {"disable-hybrid-kv-cache-manager": True}}}},
    ],
)
def test_windows_count_whole_where_vllm_may_keep_them(changes: dict[str, Any], make_blueprint: Make) -> None:
    model = catalog.model("openai/gpt-oss-20b")
    assert memory(make_blueprint(**GPT_OSS, **changes)).kv_bytes_per_token == model.kv_bytes_per_token()


LLAMA_4: dict[str, Any] = {
    "instance_types": ["p5.48xlarge"],
    "weights": {"huggingFace": "meta-llama/Llama-4-Scout-17B-16E-Instruct", "revision": "main"},
    "workload": {"inputTokens": 99_000, "outputTokens": 1000, "peakRequestsPerSecond": 0.1},
}


@pytest.mark.parametrize(
    ("changes", "frees"),
    [
        ({}, True),
        ({"speculation": {"nGram": {}}}, True),
        ({"speculation": {"eagle": {"huggingFace": "acme/Scout-Eagle", "revision": "a" * 40}}}, False),
    ],
)
def test_vllm_frees_chunks_unless_a_draft_guesses(
    changes: dict[str, Any], *, frees: bool, make_blueprint: Make
) -> None:
    """``config/vllm.py`` and ``envs.py`` of 0.31.0. Three quarters of the layers have chunks of 8,192."""
    model = catalog.model("meta-llama/Llama-4-Scout-17B-16E-Instruct")
    demand = memory(make_blueprint(**LLAMA_4, **changes)).demand
    assert demand is not None
    assert demand.use.frees_windows is frees
    whole = request_bytes(model, replace(demand.use, frees_windows=False), 100_000)
    assert (request_bytes(model, demand.use, 100_000) < 0.5 * whole) is frees


def test_every_method_of_speculation_has_an_engine() -> None:
    assert set().union(*(each.speculation_methods for each in ENGINES.values())) == {
        "mtp",
        "nGram",
        "eagle",
    }


@pytest.mark.parametrize(("engine", "warnings"), [("tensorrtLlm", 1), ("vllm", 0), ("sglang", 0)])
def test_states_are_counted_where_the_engine_says_how_many(
    engine: str, warnings: int, make_blueprint: Make
) -> None:
    weights = {"s3": "s3://weights/model/", "catalog": "Qwen/Qwen3.5-9B"}
    found = memory_findings(resolve(make_blueprint(engine={engine: {}}, weights=weights), 0, 0)[0])
    assert sum("states it keeps per request" in each.message for each in found) == warnings
