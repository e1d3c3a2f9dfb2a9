"""Engine arguments that change device memory: each is modelled, or refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import inference_catalog as catalog
from inference_blueprints.serving.checks.serving_checks import serving_findings
from inference_blueprints.serving.engines import ENGINES
from inference_blueprints.spec.types import Blueprint

Make = Callable[..., Blueprint]


def refused(make_blueprint: Make, engine: str, arguments: dict[str, Any]) -> dict[str | int, str]:
    """Return the messages of the errors at a model's engine arguments, by argument."""
    found = serving_findings(make_blueprint(engine={engine: {"args": arguments}}))
    return {each.path[-1]: each.message for each in found if "args" in each.path and each.severity == "error"}


@pytest.mark.parametrize("engine", sorted(ENGINES))
def test_every_refused_argument_is_a_flag_of_the_engine(engine: str) -> None:
    assert {f"--{name}" for name in catalog.memory_arguments(engine)} <= set(catalog.engine(engine).flags)


@pytest.mark.parametrize("engine", sorted(ENGINES))
def test_what_the_plan_models_is_not_refused(engine: str) -> None:
    names = ENGINES[engine].argument_names
    modelled = {*names.counts, names.memory_share, names.kv_cache_type}
    assert modelled.isdisjoint(catalog.memory_arguments(engine))


@pytest.mark.parametrize(
    ("engine", "arguments"),
    [
        ("vllm", {"speculative-config": '{"method":"ngram"}', "enable-lora": True, "quantization": "fp8"}),
        ("sglang", {"speculative-algorithm": "EAGLE", "enable-lora": True, "quantization": "fp8"}),
        ("tensorrtLlm", {"quant-algo": "FP8"}),
        ("vllm", {"mamba-cache-mode": "all", "use-replayssm": True, "mamba-ssm-cache-dtype": "fp8"}),
        ("sglang", {"mamba-full-memory-ratio": 0.5, "swa-full-tokens-ratio": 0.5, "mamba-ssm-dtype": "fp8"}),
        ("sglang", {"disable-hybrid-swa-memory": True, "max-mamba-cache-size": 64}),
    ],
)
def test_memory_that_is_not_modelled_is_refused(
    engine: str, arguments: dict[str, Any], make_blueprint: Make
) -> None:
    assert set(refused(make_blueprint, engine, arguments)) == set(arguments)


def test_the_message_says_the_effect_and_what_to_do(make_blueprint: Make) -> None:
    messages = refused(make_blueprint, "vllm", {"quantization": "fp8", "dtype": "float32"})
    assert messages == {
        "quantization": (
            "'quantization' changes the size of the weights, and the plan's memory estimate does not model "
            "this; set 'quantization' of the model, or serve a repository whose weights have that type"
        ),
        "dtype": (
            "got 'float32', which changes the size of weights and KV cache, and the plan's memory estimate "
            "models only auto, half, float16, bfloat16; leave it out"
        ),
    }


def test_values_that_change_nothing_are_accepted(make_blueprint: Make) -> None:
    assert refused(make_blueprint, "vllm", {"dtype": "bfloat16", "enable-lora": False}) == {}
    states = {"mamba-cache-dtype": "float32", "mamba-ssm-cache-dtype": "float32", "mamba-cache-mode": "align"}
    assert refused(make_blueprint, "vllm", states) == {}
