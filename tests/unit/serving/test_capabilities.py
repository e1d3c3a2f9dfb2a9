"""Which weights, attention and KV cache an engine runs on a GPU, before anybody pays for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import pytest

import inference_catalog as catalog
from inference_blueprints.serving.checks.capability_checks import capability_findings
from inference_blueprints.serving.resolved import resolve
from inference_blueprints.spec.types import Blueprint
from inference_catalog.capabilities import (
    attention_kind,
    cache_format,
    capabilities,
    engine_support,
    weight_format,
)
from inference_contracts.errors import Finding

Make = Callable[..., Blueprint]

ENGINES = ("vllm", "sglang", "tensorrtLlm")
GPUS = {
    each.accelerator.name: each.name
    for each in sorted(catalog.instance_types().values(), key=lambda each: -each.accelerator_count)
    if each.accelerator and each.accelerator.manufacturer == "nvidia"
}
# One repository or type of each format, of each tool, and of each kind of attention.
WEIGHTS: tuple[dict[str, str], ...] = (
    *(
        {"huggingFace": name}
        for name in (
            "Qwen/Qwen3-8B",
            "Qwen/Qwen3-32B-FP8",
            "nvidia/Llama-3.1-70B-Instruct-FP8",
            "nvidia/Qwen3-235B-A22B-NVFP4",
            "openai/gpt-oss-20b",
            "moonshotai/Kimi-K2.5",
            "deepseek-ai/DeepSeek-R1",
            "deepseek-ai/DeepSeek-V3.2",
            "deepseek-ai/DeepSeek-V4-Flash",
            "google/gemma-3-12b-it",
        )
    ),
    *(
        {"huggingFace": "acme/own", "catalog": "Qwen/Qwen3-8B", "type": kind}
        for kind in ("fp8", "fp8Blocks", "int8", "int4", "nvfp4")
    ),
)


@pytest.fixture
def found(make_blueprint: Make) -> Callable[..., list[Finding]]:
    """Return a function from engine, weights and GPU to what the check finds."""

    def find(engine: str, weights: dict[str, str], gpu: str, **model: Any) -> list[Finding]:
        args = model.pop("args", {})
        blueprint = make_blueprint(
            instance_types=[GPUS.get(gpu, gpu)], weights=weights, engine={engine: {"args": args}}, **model
        )
        [resolved] = resolve(blueprint, 0, 0)
        return list(capability_findings(resolved))

    return find


def test_every_combination_runs_or_says_why_not(found: Callable[..., list[Finding]]) -> None:
    """Red if a combination has no answer, or an error does not name engine, GPU, capability and a way out."""
    answers: dict[str, int] = {"runs": 0, "error": 0, "warning": 0}
    for engine, weights, gpu, cache in product(ENGINES, WEIGHTS, GPUS, ("auto", "fp8")):
        findings = found(engine, weights, gpu, kvCacheType=cache)
        errors = [each for each in findings if each.severity == "error"]
        assert len(findings) <= (1 if errors else 2)
        for each in findings:
            assert each.path[-1] == "pool"
            capability = catalog.accelerator(gpu).compute_capability
            assert f"({gpu}, compute capability {capability})" in each.message
            assert f"{engine} {catalog.engine(engine).engine_version} " in each.message
            ways = ("; take a GPU", "or take a GPU", "set 'engine", "compare", "or serve", "or name another")
            assert any(way in each.message for way in ways)
        answers["error" if errors else "warning" if findings else "runs"] += 1
    assert all(answers.values()), answers


@pytest.mark.parametrize(
    ("engine", "weights", "gpu", "words"),
    [
        ("sglang", "nvidia/Llama-3.1-70B-Instruct-FP8", "a100-80gb", "stops with 'Minimum capability: 89'"),
        ("sglang", "Qwen/Qwen3-1.7B", "t4g", "computes in float16 instead of bfloat16"),
        ("vllm", "deepseek-ai/DeepSeek-V3.2", "a100-80gb", "has no kernel for it below 9.0"),
        ("tensorrtLlm", "nvidia/MiniMax-M2.5-NVFP4", "h200", "is not listed for it in NVIDIA's"),
        ("tensorrtLlm", "openai/gpt-oss-120b", "l40s", "is not listed for it in NVIDIA's"),
        ("tensorrtLlm", "moonshotai/Kimi-K2.5", "l40s", "no kernel of latent attention below 9.0"),
        ("sglang", "deepseek-ai/DeepSeek-V3.2", "l40s", "has no kernel for it below 9.0"),
        ("tensorrtLlm", "Qwen/Qwen3-VL-30B-A3B-Instruct-FP8", "a10g", "set 'engine: {vllm: {}}'"),
        ("tensorrtLlm", "Qwen/Qwen3-235B-A22B-FP8", "rtx-pro-6000", "h100 (p5)"),
    ],
)
def test_what_crashes_in_a_loop_is_an_error(
    found: Callable[..., list[Finding]], engine: str, weights: str, gpu: str, words: str
) -> None:
    """Red if a worker that cannot start is called valid: it is paid for until somebody reads its log."""
    [finding] = found(engine, {"huggingFace": weights}, gpu)
    assert finding.severity == "error"
    assert words in finding.message


@pytest.mark.parametrize(
    ("engine", "weights", "gpu"),
    [
        ("vllm", "nvidia/Qwen3-235B-A22B-NVFP4", "h100"),
        ("sglang", "nvidia/Qwen3-235B-A22B-NVFP4", "h100"),
        ("vllm", "Qwen/Qwen3-32B-FP8", "a10g"),
        ("vllm", "openai/gpt-oss-20b", "a10g"),
        ("tensorrtLlm", "nvidia/DeepSeek-V3.1-NVFP4", "b200"),
        ("tensorrtLlm", "nvidia/Llama-3.1-70B-Instruct-FP8", "l40s"),
        # The matrix of formats leaves it out; the guide of gpt-oss has it.
        ("tensorrtLlm", "openai/gpt-oss-120b", "h200"),
    ],
)
def test_what_runs_is_let_through(
    found: Callable[..., list[Finding]], engine: str, weights: str, gpu: str
) -> None:
    """Red if a format that the engine takes as weights only is refused because no kernel computes in it."""
    assert found(engine, {"huggingFace": weights}, gpu) == []


def test_the_type_of_the_cache_is_checked(found: Callable[..., list[Finding]]) -> None:
    latent = {"huggingFace": "deepseek-ai/DeepSeek-R1"}
    [finding] = found("vllm", latent, "h200", args={"kv-cache-dtype": "fp8_e5m2"})
    assert "latent attention with a KV cache in fp8_e5m2: vllm 0.31.0 has no kernel" in finding.message
    assert "leave the type of the KV cache out" in finding.message
    assert found("vllm", latent, "h200", kvCacheType="fp8") == []


def test_the_type_that_a_checkpoint_sets_is_checked(found: Callable[..., list[Finding]]) -> None:
    """Red if ``auto`` is taken for 16 bits: engines take FP8 of this file."""
    model = {"huggingFace": "nvidia/DeepSeek-V3.1-NVFP4"}
    [finding] = found("vllm", model, "a100-80gb")
    assert "latent attention with a KV cache in fp8_e4m3, which 'auto' means here" in finding.message
    assert "set 'kvCacheType: bf16'" in finding.message
    assert found("vllm", model, "a100-80gb", kvCacheType="bf16") == []


def test_deepseek_v4_has_its_cache_in_fp8(found: Callable[..., list[Finding]]) -> None:
    """Red if the plan counts on 16 bits, with which vLLM stops (``_resolve_dsv4_kv_cache_dtype``)."""
    model = {"huggingFace": "deepseek-ai/DeepSeek-V4-Flash"}
    for gpu in ("h200", "b200"):
        assert found("vllm", model, gpu) == found("vllm", model, gpu, kvCacheType="fp8") == []
        [finding] = found("vllm", model, gpu, kvCacheType="bf16")
        assert "DeepSeek V4 with a KV cache in 16 bits: vllm 0.31.0 stops with" in finding.message
        assert finding.message.endswith("leave the type of the KV cache out")
    [finding] = found("vllm", model, "a100-80gb")
    assert "a KV cache in FP8, which 'auto' means here: vllm 0.31.0 has no kernel" in finding.message
    [finding] = found("tensorrtLlm", model, "h200")
    assert "on Blackwell GPUs (SM100+) only" in finding.message


@pytest.mark.parametrize("name", ["nvidia/DeepSeek-V3.2-NVFP4", "nvidia/GLM-5-NVFP4"])
def test_sparse_attention_with_the_checkpoint_s_type_runs_on_hopper(
    found: Callable[..., list[Finding]], name: str
) -> None:
    """``FLASHINFER_MLA_SPARSE_SM90`` of vLLM 0.31.0 takes fp8_e4m3."""
    assert found("vllm", {"huggingFace": name}, "h200") == []


@pytest.mark.parametrize(
    ("weights", "gpu", "backend", "words"),
    [
        ("deepseek-ai/DeepSeek-R1", "rtx-pro-6000", "FLASHMLA", "take 'TRITON_MLA', or remove it"),
        ("openai/gpt-oss-20b", "a10g", "FLASH_ATTN", "does not have for attention with sinks"),
        ("deepseek-ai/DeepSeek-R1", "h200", "FLASHMLA", None),
        # The type of the checkpoint is fp8_e4m3, which these kernels do not take.
        ("nvidia/DeepSeek-V3.2-NVFP4", "h200", "FLASHMLA_SPARSE", "take 'FLASHINFER_MLA_SPARSE_SM90', or"),
        ("nvidia/DeepSeek-V3.2-NVFP4", "b200", "FLASHMLA_SPARSE", "take 'FLASHINFER_MLA_SPARSE', or remove"),
        ("nvidia/DeepSeek-V3.2-NVFP4", "h200", "FLASHINFER_MLA_SPARSE_SM90", None),
        ("deepseek-ai/DeepSeek-V4-Flash", "h200", "FLASHINFER_MLA_SPARSE", "take 'FLASHMLA_SPARSE'"),
        ("Qwen/Qwen3-8B", "l4", "FLASHINFER", None),
        ("Qwen/Qwen3-8B", "l4", "OF_ANOTHER_RELEASE", None),
    ],
)
def test_chosen_kernels_of_attention_are_those_of_the_gpu(
    found: Callable[..., list[Finding]], weights: str, gpu: str, backend: str, words: str | None
) -> None:
    findings = found("vllm", {"huggingFace": weights}, gpu, args={"attention-backend": backend})
    assert len(findings) == bool(words)
    assert all(words in each.message and each.severity == "error" for each in findings if words)


def test_kernels_of_sglang_are_checked_too(found: Callable[..., list[Finding]]) -> None:
    [finding] = found("sglang", {"huggingFace": "Qwen/Qwen3-8B"}, "b200", args={"attention-backend": "fa3"})
    assert finding.message.endswith("on b200 (10.0); take 'trtllm_mha', or remove it")


def _offers(findings: list[Finding]) -> str:
    [finding] = findings
    return finding.message.rpartition("; ")[2]


def test_only_remedies_that_fit_are_offered(found: Callable[..., list[Finding]]) -> None:
    """Red if a model of 671 billion parameters is offered in bfloat16 for GPUs that hold a tenth of it."""
    large = {"huggingFace": "deepseek-ai/DeepSeek-R1"}
    text = _offers(found("tensorrtLlm", large, "l40s"))
    assert "bfloat16" not in text
    assert "l4 (" not in text
    assert "h200 (p5" in text
    small = {"huggingFace": "Qwen/Qwen3-8B", "catalog": "Qwen/Qwen3-8B"}
    quantised = {"huggingFace": "acme/own", "catalog": "Qwen/Qwen3-8B", "type": "nvfp4"}
    assert "weights in bfloat16" in _offers(found("sglang", quantised, "l4"))
    assert found("vllm", small, "l4") == []
    for weights in ("nvidia/Qwen3-235B-A22B-NVFP4", "nvidia/Kimi-K2.5-NVFP4"):
        text = _offers(found("tensorrtLlm", {"huggingFace": weights}, "h100"))
        assert "bfloat16" not in text


@pytest.mark.parametrize(
    ("engine", "weights", "gpu", "args"),
    [
        ("vllm", "Qwen/Qwen3-8B", "l40s", {"attention-config": '{"backend": "FLASHMLA"}'}),
        ("vllm", "Qwen/Qwen3-8B", "l40s", {"attention-backend": "flashmla"}),
        ("vllm", "Qwen/Qwen3-8B", "l40s", {"attention-config": '{"backend": "cutlass_mla"}'}),
        ("vllm", "deepseek-ai/DeepSeek-R1", "h200", {"attention-config": '{"backend": "CUTLASS_MLA"}'}),
        (
            "vllm",
            "deepseek-ai/DeepSeek-R1",
            "b200",
            {"attention-config": '{"backend_per_kind": {"mla_attention": "FLASHMLA"}}'},
        ),
        ("sglang", "Qwen/Qwen3-8B", "b200", {"prefill-attention-backend": "fa3"}),
        ("sglang", "Qwen/Qwen3-8B", "b200", {"decode-attention-backend": "fa3"}),
        ("sglang", "Qwen/Qwen3-8B", "l40s", {"decode-attention-backend": "trtllm_mha"}),
    ],
)
def test_kernels_are_judged_wherever_they_are_named(
    found: Callable[..., list[Finding]], engine: str, weights: str, gpu: str, args: dict[str, str]
) -> None:
    """Red if kernels that stop the engine pass in an object of JSON, in lower case, or for one phase."""
    [finding] = found(engine, {"huggingFace": weights}, gpu, args=args)
    assert finding.severity == "error"
    assert (finding.path[-1], "which " + engine in finding.message) == (next(iter(args)), True)


@pytest.mark.parametrize(
    "args",
    [
        {"attention-config": '{"backend": "flashinfer"}'},
        {"attention-config": '{"backend": "auto", "flash_attn_version": 2}'},
        {"attention-config": '{"backend_per_kind": {"full_attention": "FLASH_ATTN"}}'},
        {"attention-config": "not json"},
        {"compilation-config": '{"mode": 3}', "hf-overrides": '{"max_position_embeddings": 65536}'},
    ],
)
def test_kernels_that_run_pass_in_json(found: Callable[..., list[Finding]], args: dict[str, str]) -> None:
    assert found("vllm", {"huggingFace": "Qwen/Qwen3-8B"}, "l40s", args=args) == []


def test_a_type_in_the_changed_config_is_the_type(found: Callable[..., list[Finding]]) -> None:
    """Red if float16 in JSON is judged as bfloat16, which a T4G does not have."""
    for engine, name in (("vllm", "hf-overrides"), ("sglang", "json-model-override-args")):
        for key in ("dtype", "torch_dtype"):
            args = {name: f'{{"{key}": "float16"}}'}
            findings = found(engine, {"huggingFace": "Qwen/Qwen3-0.6B"}, "t4g", args=args)
            assert [each.severity for each in findings] == ["warning"]
            assert "weights in float16" in findings[0].message


def test_weights_that_are_quantised_at_start_are_checked(found: Callable[..., list[Finding]]) -> None:
    plain = {"huggingFace": "Qwen/Qwen3-8B"}
    assert found("vllm", plain, "a10g", quantization="fp8") == []
    [finding] = found("vllm", plain, "t4g", quantization="fp8", args={"dtype": "half"})
    assert finding.severity == "warning"


def test_float16_on_turing_is_a_doubt(found: Callable[..., list[Finding]]) -> None:
    """vLLM takes it, and Dynamo's images are documented for newer GPUs."""
    findings = found("vllm", {"huggingFace": "Qwen/Qwen3-1.7B"}, "t4g", args={"dtype": "half"})
    assert {each.severity for each in findings} == {"warning"}
    assert "is not known: vLLM takes it on 7.5, but the images of Dynamo 1.6.1" in findings[0].message


def test_an_unknown_tool_decides_nothing(found: Callable[..., list[Finding]]) -> None:
    """SGLang takes ModelOpt's NVFP4 on an H100, and stops with that of compressed-tensors."""
    own = {"huggingFace": "acme/own", "catalog": "Qwen/Qwen3-8B", "type": "nvfp4"}
    [finding] = found("sglang", own, "h100")
    assert finding.severity == "warning"
    assert "is not known" in finding.message


def test_integers_of_four_bits_are_those_of_awq_and_gptq(found: Callable[..., list[Finding]]) -> None:
    own = {"huggingFace": "acme/own", "catalog": "Qwen/Qwen3-8B", "type": "int4"}
    [finding] = found("tensorrtLlm", own, "b200")
    assert finding.severity == "error"
    assert found("vllm", own, "b200") == []


def test_known_wrong_answers_are_a_warning(found: Callable[..., list[Finding]]) -> None:
    [finding] = found("vllm", {"huggingFace": "nvidia/Qwen3-235B-A22B-NVFP4"}, "rtx-pro-6000")
    assert finding.severity == "warning"
    assert "vllm-project/vllm#48898" in finding.message


def rows() -> Iterator[Any]:
    for support in engine_support().values():
        yield from (*support.weights.values(), *support.attention.values())


def test_the_table_is_sound() -> None:
    """Red if a cell is both accepted and refused, a name is misspelled, or a row has no source."""
    known = {*capabilities()}
    for row in rows():
        assert {*row.accepted, *row.refused, *row.fast, *row.wrong} <= known
        assert all({*each} <= {*row.accepted, "8.0", "8.6"} for each in row.backends.values())
        assert not {*row.accepted} & {*row.refused}
        assert {*row.fast} <= {*row.accepted}
        assert row.source
        assert bool(row.refused) == bool(row.refusal)
    for engine, support in engine_support().items():
        assert support.release == catalog.engine(engine).engine_version


def test_every_model_and_gpu_has_a_place_in_the_table() -> None:
    for device in catalog.accelerators().values():
        assert (device.manufacturer == "nvidia") == (device.compute_capability in capabilities())
    for model in catalog.models().values():
        assert weight_format(model) in engine_support()["vllm"].weights
        assert f"{attention_kind(model)}/16bit" in engine_support()["vllm"].attention
        assert bool(model.quantisation_method) == (model.weight_type != "bf16")
    assert [cache_format(each) for each in ("auto", "fp8_e4m3", "fp8_e5m2")] == [
        "16bit",
        "fp8E4m3",
        "fp8E5m2",
    ]
