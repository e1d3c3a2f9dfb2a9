"""Keys of compiled artefacts. Bug: a worker loads a program that was compiled for something else."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from inference_blueprints.serving.resolved import resolve
from inference_blueprints.serving.stacks.direct import ArtefactParts, artefact_key, artefact_parts
from inference_blueprints.serving.stacks.engine_process import engine_image
from inference_blueprints.spec.types import Blueprint

Make = Callable[..., Blueprint]

COMMIT, OTHER = "0" * 40, "1" * 40
PARTS = ArtefactParts(
    model="acme/llama",
    revision=COMMIT,
    image="public.ecr.aws/neuron/vllm:1",
    accelerator="trainium2",
    cores=16,
    logical_core_config=2,
    weight_type="bf16",
    arguments={"max-model-len": 4096, "max-num-seqs": 8},
    environment={"NEURON_CC_FLAGS": "-O2"},
)
CHANGED: Mapping[str, Any] = {
    "model": "acme/llama-2",
    "revision": OTHER,
    "image": "public.ecr.aws/neuron/vllm:2",
    "accelerator": "inferentia2",
    "cores": 32,
    "logical_core_config": 1,
    "weight_type": "fp8",
    "arguments": {"max-model-len": 8192, "max-num-seqs": 8},
    "environment": {},
}


@pytest.mark.parametrize("part", [field.name for field in dataclasses.fields(ArtefactParts)])
def test_each_part_changes_the_key(part: str) -> None:
    """Parametrised by the fields themselves: a new part without a case here is a KeyError."""
    other = dataclasses.replace(PARTS, **{part: CHANGED[part]})
    assert artefact_key(other) != artefact_key(PARTS)


def test_the_order_of_arguments_does_not() -> None:
    turned = dict(reversed([*PARTS.arguments.items()]))
    assert artefact_key(dataclasses.replace(PARTS, arguments=turned)) == artefact_key(PARTS)


def test_parts_do_not_run_into_each_other() -> None:
    """Bug: joined texts, in which ``ab`` and ``c`` are ``a`` and ``bc``."""
    one = dataclasses.replace(PARTS, model="ab", revision="c")
    other = dataclasses.replace(PARTS, model="a", revision="bc")
    assert artefact_key(one) != artefact_key(other)


@pytest.fixture
def key_of(make_blueprint: Make) -> Callable[..., str]:
    """Return a function that returns the key of a blueprint's worker, with changes."""

    def key(
        instance_type: str = "trn2.48xlarge",
        devices: int = 4,
        revision: str = COMMIT,
        repository: str = "meta-llama/Llama-3.1-8B-Instruct",
        **engine: Any,
    ) -> str:
        blueprint = make_blueprint(
            instance_types=[instance_type],
            aggregated={"tensorParallelSize": devices},
            workload={"inputTokens": 1000, "outputTokens": 200, "peakRequestsPerSecond": 0.1},
            engine={"vllmNeuron": engine},
            weights={"huggingFace": repository, "revision": revision},
            **({"name": "other-name"} if engine.pop("renamed", None) else {}),
        )
        [workers] = resolve(blueprint, 0, 0)
        parts = artefact_parts(workers, engine_image(workers))
        assert parts is not None
        return artefact_key(parts)

    return key


@pytest.mark.parametrize(
    "change",
    [
        {"instance_type": "inf2.48xlarge"},
        {"devices": 8},
        {"revision": OTHER},
        {"repository": "meta-llama/Llama-3.3-70B-Instruct"},
        {"args": {"max-model-len": 1201}},
        {"args": {"max-num-seqs": 3}},
        {"args": {"max-num-batched-tokens": 4096}},
        {"args": {"kv-cache-dtype": "fp8"}},
        {"args": {"gpu-memory-utilization": 0.8}},
        {"args": {"optimization-level": 2}},
        {"args": {"seed": 7}},
        {"env": {"NEURON_CC_FLAGS": "-O2"}},
        {"image": {"name": "registry.example.com/vllm:1", "release": ""}},
    ],
)
def test_what_a_blueprint_changes_about_a_program_changes_the_key(
    change: dict[str, Any], key_of: Callable[..., str]
) -> None:
    if "image" in change:
        release = "0.24.0.1.1.0-neuronx-py313-sdk2.32.0-ubuntu24.04"
        change = {"image": {**change["image"], "release": release}}
    assert key_of(**change) != key_of()


def test_a_model_under_another_name_is_the_same_program(key_of: Callable[..., str]) -> None:
    assert key_of(renamed=True) == key_of()


@pytest.mark.parametrize("revision", [None, "main"])
def test_a_branch_is_not_kept(revision: str | None, make_blueprint: Make) -> None:
    """Its files may change, and vLLM with NxD Inference would not notice."""
    weights = {"huggingFace": "meta-llama/Llama-3.1-8B-Instruct", "revision": revision}
    blueprint = make_blueprint(instance_types=["trn2.48xlarge"], engine={"vllmNeuron": {}}, weights=weights)
    [workers] = resolve(blueprint, 0, 0)
    assert artefact_parts(workers, "image") is None


def test_gpus_compile_nothing_that_is_kept(make_blueprint: Make) -> None:
    weights = {"huggingFace": "Qwen/Qwen3-8B", "revision": COMMIT}
    [workers] = resolve(make_blueprint(weights=weights), 0, 0)
    assert artefact_parts(workers, "image") is None
