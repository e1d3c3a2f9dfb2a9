"""Drafts that guess tokens (EAGLE): the arguments of engines, memory, files, and drafts that do not fit."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import inference_catalog as catalog
from inference_blueprints.measure.tuning.coverage import unsuited_arguments
from inference_blueprints.serving.checks.serving_checks import serving_findings
from inference_blueprints.serving.engines.worker_sizing import worker_memory
from inference_blueprints.serving.estimates.memory_estimate import MemoryEstimate
from inference_blueprints.serving.estimates.node_copies import own_disk_mib
from inference_blueprints.serving.performance import speeds
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.serving.resolved import resolve
from inference_blueprints.serving.stacks.engine_process import startup_seconds
from inference_blueprints.spec.model_files import with_models
from inference_blueprints.spec.types import Blueprint
from inference_catalog.catalogue import model_entry
from inference_catalog.configurations.describe import describe

Make = Callable[..., Blueprint]
Plan = Callable[..., Blueprint]

COMMIT = "0a1b2c3d4e" * 4
NAME = "acme/Qwen3-8B-Eagle3"
#: The fields of ``configs/qwen3-32b-eagle3.json`` of sgl-project/SpecForge, in the sizes of Qwen3-8B.
CONFIGURATION = {
    "architectures": ["LlamaForCausalLMEagle3"],
    "hidden_size": 4096,
    "intermediate_size": 12288,
    "max_position_embeddings": 40960,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "num_hidden_layers": 1,
    "tie_word_embeddings": False,
    "vocab_size": 151936,
    "draft_vocab_size": 32000,
}
#: It reads three hidden states. This projection and four norms are whole on each device.
WHOLE = 2 * (3 * 4096 * 4096 + 4 * 4096)


def draft_of(configuration: dict[str, Any], *, gated: bool = False) -> catalog.Model:
    facts = {"answer_format": None, "gated": gated, "licence": "MIT", "source": "a test: none"}
    return model_entry(NAME, describe(configuration) | facts, Path("draft.json"))


@pytest.fixture
def drafted(make_blueprint: Make) -> Plan:
    """Return a function that makes a blueprint of Qwen3-8B with a draft next to it."""

    def make(
        draft: dict[str, Any] | None = None,
        *,
        eagle: dict[str, Any] | None = None,
        gated: bool = False,
        **other: Any,
    ) -> Blueprint:
        section = {"huggingFace": NAME, "revision": COMMIT, "tokens": 4} | (eagle or {})
        blueprint = make_blueprint(speculation={"eagle": section}, **other)
        return with_models(blueprint, {NAME: draft_of(CONFIGURATION | (draft or {}), gated=gated)})

    return make


def arguments(blueprint: Blueprint) -> tuple[str, ...]:
    return build_plan(blueprint).models[0].deployments[0].workers[0].arguments


def memory(blueprint: Blueprint) -> MemoryEstimate:
    return worker_memory(resolve(blueprint, 0, 0)[0])


def messages(blueprint: Blueprint, severity: str = "error") -> list[str]:
    return [each.message for each in serving_findings(blueprint) if each.severity == severity]


@pytest.mark.parametrize(
    ("name", "method"), [("LlamaForCausalLMEagle3", "eagle3"), ("EagleLlamaForCausalLM", "eagle")]
)
def test_vllm_gets_the_keys_of_its_configuration(name: str, method: str, drafted: Plan) -> None:
    """The keys are fields of ``SpeculativeConfig`` in ``vllm/config/speculative.py`` of vLLM 0.31.0."""
    blueprint = drafted({"architectures": [name]})
    words = arguments(blueprint)
    assert not messages(blueprint)
    assert json.loads(words[words.index("--speculative-config") + 1]) == {
        "method": method,
        "model": NAME,
        "revision": COMMIT,
        "num_speculative_tokens": 4,
    }


@pytest.mark.parametrize(
    ("name", "algorithm"), [("LlamaForCausalLMEagle3", "EAGLE3"), ("LlamaForCausalLMEagle", "EAGLE")]
)
def test_sglang_gets_one_chain_of_guesses(name: str, algorithm: str, drafted: Plan) -> None:
    """``arg_groups/fields/spec.py`` of SGLang 0.5.21 defines the flags."""
    blueprint = drafted({"architectures": [name]}, engine={"sglang": {}})
    words = arguments(blueprint)
    assert not messages(blueprint)
    expected = {
        "--speculative-algorithm": algorithm,
        "--speculative-draft-model-path": NAME,
        "--speculative-draft-model-revision": COMMIT,
        "--speculative-num-steps": "4",
        "--speculative-eagle-topk": "1",
        "--speculative-num-draft-tokens": "5",
    }
    assert {flag: words[words.index(flag) + 1] for flag in expected} == expected
    assert expected.keys() <= catalog.engine("sglang").flags.keys()


@pytest.mark.parametrize("size", [1, 2])
def test_a_device_holds_the_projection_whole_and_a_part_of_the_rest(
    size: int, drafted: Plan, make_blueprint: Make
) -> None:
    shape: dict[str, Any] = {
        "instance_types": ["g6e.12xlarge"],
        "aggregated": {"tensorParallelSize": size, "replicas": 1},
    }
    plain, guessing = memory(make_blueprint(**shape)), memory(drafted(**shape))
    whole = draft_of(CONFIGURATION).weight_bytes
    assert guessing.weights_bytes - plain.weights_bytes == WHOLE + (whole - WHOLE) // size
    assert guessing.kv_bytes_per_token - plain.kv_bytes_per_token == 2 * 128 * 8 * 2 // size
    taken = guessing.weights_bytes + guessing.activation_bytes - plain.weights_bytes - plain.activation_bytes
    assert plain.kv_cache_bytes - guessing.kv_cache_bytes == taken
    assert guessing.kv_tokens == guessing.kv_cache_bytes // guessing.kv_bytes_per_token


def test_the_cache_of_a_draft_has_the_type_of_the_model_s(drafted: Plan) -> None:
    whole, half = memory(drafted()), memory(drafted(kvCacheType="fp8"))
    assert half.kv_bytes_per_token == whole.kv_bytes_per_token / 2


def test_sglang_reserves_a_layer_of_the_model_for_a_smaller_one(drafted: Plan) -> None:
    smaller = {"num_key_value_heads": 4}
    per_layer = catalog.model("Qwen/Qwen3-8B").kv_bytes_per_token() / 36
    assert memory(drafted(smaller)).kv_bytes_per_token == 36.5 * per_layer
    assert memory(drafted(smaller, engine={"sglang": {}})).kv_bytes_per_token == 37 * per_layer


@pytest.mark.parametrize("revision", ["main", COMMIT], ids=["own files", "the node's copy"])
def test_each_worker_has_files_of_its_own(revision: str, drafted: Plan, make_blueprint: Make) -> None:
    """A node's copy holds one repository, so the engine downloads the draft for each worker."""
    weights = {"huggingFace": "Qwen/Qwen3-8B", "revision": revision}
    [plain], [guessing] = (
        resolve(make_blueprint(weights=weights), 0, 0),
        resolve(drafted(weights=weights), 0, 0),
    )
    size = draft_of(CONFIGURATION).weight_bytes
    assert own_disk_mib(guessing) - own_disk_mib(plain) == -(-size // 2**20) + 512
    assert startup_seconds(guessing) - startup_seconds(plain) == pytest.approx(size / 100e6, abs=1)


def test_its_speed_is_unknown(drafted: Plan) -> None:
    blueprint = drafted()
    assert speeds(resolve(blueprint, 0, 0)[0]) is None
    [message] = unsuited_arguments(blueprint, 0)
    assert message.startswith("spec.models[0].speculation: ")


@pytest.mark.parametrize(
    ("draft", "other", "part"),
    [
        ({}, {"gated": True}, "which is gated (MIT), and workers fetch drafts without a token"),
        ({"target_hidden_size": 5120}, {}, "trained for a model of hidden size 5120 and 151936 tokens"),
        ({"architectures": ["Eagle3LlamaForCausalLM"]}, {"engine": {"sglang": {}}}, "set the engine vllm"),
        ({"architectures": ["LlamaForCausalLMEagle"]}, {}, "set the engine sglang"),
        ({"num_key_value_heads": 16}, {"engine": {"sglang": {}}}, "caches more per token than a layer"),
        ({"max_position_embeddings": 2048}, {"engine": {"sglang": {}}}, "to at most 2048"),
        (
            {"num_attention_heads": 33, "num_key_value_heads": 11},
            {"instance_types": ["g6e.12xlarge"], "aggregated": {"tensorParallelSize": 2}},
            "33 attention heads, 11 KV heads",
        ),
    ],
)
def test_a_draft_that_does_not_fit_is_refused(
    draft: dict[str, Any], other: dict[str, Any], part: str, drafted: Plan
) -> None:
    [message] = messages(drafted(draft, **other))
    assert message.startswith(f"got '{NAME}', ")
    assert part in message


def test_vllm_serves_all_lengths_with_a_short_draft(drafted: Plan) -> None:
    """``_maybe_override_draft_max_position_embeddings`` in vLLM's ``config/speculative.py`` extends it."""
    assert not messages(drafted({"max_position_embeddings": 2048}))


def test_a_draft_without_a_revision_is_a_warning(drafted: Plan) -> None:
    assert any(
        "so workers guess with the newest main branch" in each
        for each in messages(drafted(eagle={"revision": None}), "warning")
    )
    assert not any("newest main branch" in each for each in messages(drafted(), "warning") if NAME in each)


def test_published_drafts_guess_for_a_model_of_the_catalogue() -> None:
    shapes = {(each.hidden_size, each.vocabulary_size) for each in catalog.models().values()}
    for draft in catalog.drafts().values():
        assert draft.draft is not None
        assert (draft.draft.target_hidden_size, draft.vocabulary_size) in shapes


def test_targets_are_classes_that_are_counted() -> None:
    for targets in catalog.draft_targets().values():
        assert set(targets) <= catalog.catalogue.shipped().architectures.keys()
