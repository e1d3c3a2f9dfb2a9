"""Settings with which an engine stops when it starts, and arguments that a stack does not have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import inference_catalog as catalog
from inference_blueprints.serving.checks.serving_checks import serving_findings
from inference_blueprints.spec.types import Blueprint
from inference_contracts.errors import Finding

Make = Callable[..., Blueprint]

DEEPSEEK = {"huggingFace": "deepseek-ai/DeepSeek-R1"}
FP8 = {"huggingFace": "Qwen/Qwen3-30B-A3B-FP8"}
GEMMA = {"huggingFace": "google/gemma-3-12b-it"}
#: Models with kernels that take few sizes of blocks, on eight GPUs of capability 10.0.
EIGHT = {"instance_types": ["p6-b200.48xlarge"], "aggregated": {"tensorParallelSize": 8}}
COMPRESSED = {"weights": {"huggingFace": "deepseek-ai/DeepSeek-V4-Flash"}, **EIGHT}
MINIMAX = {"weights": {"huggingFace": "nvidia/MiniMax-M3-NVFP4"}, **EIGHT}
SPARSE = {"weights": {"huggingFace": "deepseek-ai/DeepSeek-V3.2"}, **EIGHT}
LATENT = {"weights": DEEPSEEK, **EIGHT}
WIDE = {"instance_types": ["g6e.12xlarge"], "aggregated": {"tensorParallelSize": 2}}


def found(blueprint: Blueprint) -> list[Finding]:
    return [each for each in serving_findings(blueprint) if "args" in each.path]


@pytest.mark.parametrize(
    ("engine", "args", "changes", "words"),
    [
        ("vllm", {"gpu-memory-utilization": 0.995}, {}, "leaves 0.2 of 44.3 GiB of each l40s"),
        (
            "vllm",
            {"enable-chunked-prefill": False, "max-num-batched-tokens": 2048},
            {},
            "without it a prompt is one step, but 'max-num-batched-tokens' is 2048",
        ),
        (
            "vllm",
            {"max-num-seqs": 9000, "max-num-batched-tokens": 8192},
            {},
            "is 8192 with 'max-num-seqs' 9000",
        ),
        ("vllm", {"long-prefill-token-threshold": 50000}, {}, "set at most "),
        ("vllm", {"block-size": 24}, {}, "take multiples of 16"),
        ("vllm", {"dtype": "half"}, {"weights": GEMMA, **WIDE}, "whose numbers grow too large"),
        (
            "vllm",
            {"kv-cache-dtype": "fp8_e5m2"},
            {"weights": FP8, **WIDE},
            "not supported with fp8 checkpoints",
        ),
        ("vllm", {"hf-overrides": "rope_scaling=yarn"}, {}, "which is no JSON object"),
        ("vllm", {"numa-bind-nodes": "0"}, {}, "needs 'numa-bind: true'"),
        ("vllm", {"tokenizer-mode": "mistral"}, {}, "needs tekken.json or tokenizer.model.v*"),
        ("vllm", {"tokenizer-mode": "Mistral"}, {"weights": GEMMA, **WIDE}, "is no model of Mistral AI"),
        ("vllm", {"config-format": "mistral"}, {}, "needs params.json"),
        ("vllm", {"attention-config": "FLASHINFER"}, {}, "which is no JSON object"),
        (
            "vllm",
            {"attention-config": '{"backend": "FLASHINFER"}', "attention-backend": "FLASHINFER"},
            {},
            "names kernels too, which vLLM refuses",
        ),
        (
            "vllm",
            {"attention-config": '{"mla_prefill_backend": "trtllm_ragged"}'},
            {
                "weights": DEEPSEEK,
                "instance_types": ["p5en.48xlarge"],
                "aggregated": {"tensorParallelSize": 8},
            },
            "the kernels TRTLLM_RAGGED compute prompts on capability 10.x alone",
        ),
        ("vllm", {"hf-overrides": '{"quantization_config": {"quant_method": "fp8"}}'}, {}, "size of the wei"),
        (
            "vllm",
            {"hf-overrides": '{"text_config": {"torch_dtype": "float32"}}'},
            {},
            "torch_dtype 'float32'",
        ),
        (
            "sglang",
            {"json-model-override-args": '{"quantization_config": {"quant_method": "fp8"}}'},
            {},
            "set 'quantization' of the model",
        ),
        (
            "sglang",
            {"chunked-prefill-size": 1000, "page-size": 64},
            {},
            "must be a multiple of 'page-size' 64",
        ),
        ("vllm", {"block-size": 64}, COMPRESSED, "take multiples of 256: vLLM does not start; set 256"),
        ("vllm", {"block-size": 64}, MINIMAX, "take multiples of 128"),
        ("vllm", {"block-size": 32}, SPARSE, "take multiples of 64"),
        ("vllm", {"block-size": 64, "attention-backend": "CUTLASS_MLA"}, LATENT, "take multiples of 128"),
        ("sglang", {"page-size": 64}, COMPRESSED, "take 256, and SGLang would take one of these instead"),
        ("sglang", {"page-size": 128}, SPARSE, "take 64, and SGLang"),
        ("sglang", {"page-size": 16, "attention-backend": "trtllm_mla"}, LATENT, "take 32 or 64, and SGLang"),
        ("tensorrtLlm", {"kv-block-size": 64}, COMPRESSED, "needs 128 or 256 in TensorRT-LLM"),
        ("tensorrtLlm", {"kv-block-size": 48}, {}, "must be a power of two"),
        ("tensorrtLlm", {"max-num-tokens": 10, "max-batch-size": 4}, {}, "is whole blocks of 32 tokens"),
        ("tensorrtLlm", {"max-num-tokens": 63, "kv-block-size": 64, "max-batch-size": 4}, {}, "blocks of 64"),
        (
            "tensorrtLlm",
            {"trtllm.enable_chunked_prefill": "false", "max-num-tokens": 2048},
            {},
            "each above 'max-num-tokens' (2048) is refused",
        ),
    ],
)
def test_what_stops_at_the_start_is_an_error(
    make_blueprint: Make, engine: str, args: dict[str, Any], changes: dict[str, Any], words: str
) -> None:
    """Red if a worker that stops in its first seconds, again and again, is called valid."""
    findings = found(make_blueprint(engine={engine: {"args": args}}, **changes))
    assert [each.severity for each in findings] == ["error"] * len(findings)
    assert any(words in each.message for each in findings)


@pytest.mark.parametrize(
    ("engine", "args", "changes"),
    [
        ("vllm", {"block-size": 512}, COMPRESSED),
        ("vllm", {"block-size": 128}, SPARSE),
        ("vllm", {"block-size": 16}, LATENT),
        ("sglang", {"page-size": 256}, COMPRESSED),
        ("sglang", {"page-size": 32}, LATENT),
        ("tensorrtLlm", {"kv-block-size": 256}, COMPRESSED),
    ],
)
def test_sizes_of_blocks_that_kernels_take_are_let_through(
    make_blueprint: Make, engine: str, args: dict[str, Any], changes: dict[str, Any]
) -> None:
    assert found(make_blueprint(engine={engine: {"args": args}}, **changes)) == []


@pytest.mark.parametrize(
    ("engine", "args"),
    [
        ("vllm", {"gpu-memory-utilization": 0.95}),
        ("vllm", {"enable-chunked-prefill": False, "max-num-batched-tokens": 40960}),
        ("vllm", {"block-size": 32, "dtype": "half", "hf-overrides": '{"a": 1}'}),
        ("sglang", {"chunked-prefill-size": 2048}),
        ("tensorrtLlm", {"kv-block-size": 64}),
    ],
)
def test_what_starts_is_let_through(make_blueprint: Make, engine: str, args: dict[str, Any]) -> None:
    assert found(make_blueprint(engine={engine: {"args": args}})) == []


def test_a_model_of_mistral_may_have_its_own_files(make_blueprint: Make) -> None:
    args = {"tokenizer-mode": "mistral", "config-format": "mistral"}
    weights = {"huggingFace": "mistralai/Mistral-Nemo-Instruct-2407"}
    assert found(make_blueprint(engine={"vllm": {"args": args}}, weights=weights)) == []


def test_a_share_that_may_be_too_much_is_a_warning(make_blueprint: Make) -> None:
    [finding] = found(make_blueprint(engine={"vllm": {"args": {"gpu-memory-utilization": 0.97}}}))
    assert finding.severity == "warning"
    assert "set at most 0.95" in finding.message


@pytest.mark.parametrize(
    ("engine", "args", "steps"),
    [
        ("vllm", {"max-num-batched-tokens": 10, "max-num-seqs": 4}, "300"),
        ("vllm", {"max-num-batched-tokens": 1, "max-num-seqs": 1}, "3,000"),
        ("sglang", {"chunked-prefill-size": 16, "page-size": 1}, "188"),
        ("tensorrtLlm", {"max-num-tokens": 32, "kv-block-size": 16}, None),
        ("vllm", {"max-num-batched-tokens": 512, "max-num-seqs": 4}, None),
        ("sglang", {"chunked-prefill-size": 64, "page-size": 64}, None),
    ],
)
def test_a_prompt_in_very_many_steps_is_a_doubt(
    make_blueprint: Make, engine: str, args: dict[str, Any], steps: str | None
) -> None:
    """Red if an engine may take a mean prompt of 3,000 tokens a few tokens at a time, and nobody says so."""
    findings = found(make_blueprint(engine={engine: {"args": args}}))
    assert [each.severity for each in findings] == (["warning"] if steps else [])
    assert all(f"takes {steps} steps" in each.message for each in findings)


def test_a_rank_without_tokens_does_not_start(make_blueprint: Make) -> None:
    wide = {"tensorParallelSize": 1, "dataParallelSize": 4, "replicas": 1, "expertParallel": True}
    weights = {"huggingFace": "Qwen/Qwen3-30B-A3B-FP8"}
    args = {"chunked-prefill-size": 3, "page-size": 1}
    findings = found(
        make_blueprint(
            engine={"sglang": {"args": args}},
            weights=weights,
            instance_types=["g6e.12xlarge"],
            aggregated=wide,
        )
    )
    assert any("divides among 4 ranks" in each.message and each.severity == "error" for each in findings)


@pytest.mark.parametrize(
    ("engine", "name"), [("vllm", "hf-overrides"), ("sglang", "json-model-override-args")]
)
def test_changed_layers_are_a_doubt(make_blueprint: Make, engine: str, name: str) -> None:
    args = {name: '{"num_hidden_layers": 12, "head_dim": 64, "rope_theta": 1000000}'}
    [finding] = found(make_blueprint(engine={engine: {"args": args}}))
    assert finding.severity == "warning"
    assert "got 'num_hidden_layers', 'head_dim', which changes the model's layers" in finding.message


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"engine": {"vllm": {"args": {"chat-template": "/own.jinja"}}}},
            "name it as 'chat: {template: …}' of the model",
        ),
        (
            {"engine": {"vllm": {"args": {"default-chat-template-kwargs": "{}"}}}},
            "set 'chat: {thinking: false}' of the model",
        ),
        ({"engine": {"vllm": {"args": {"enable-auto-tool-choice": True}}}}, "set 'parsers' of the model"),
        ({"engine": {"vllm": {"args": {"uvicorn-log-level": "debug"}}}}, "or set 'stack: {llmD: {}}'"),
        (
            {"engine": {"tensorrtLlm": {"args": {"chat-template": "/own.jinja"}}}},
            "which is no argument of Dynamo's workers with tensorrtLlm",
        ),
        (
            {"engine": {"sglang": {"args": {"chat-template": "chatml"}}}},
            "which has no effect without 'use-sglang-tokenizer'",
        ),
        (
            {"engine": {"vllm": {"args": {"custom-jinja-template": "/x"}}}, "stack": {"llmD": {}}},
            "an argument of Dynamo's workers, and this stack starts vllm's own server",
        ),
    ],
)
def test_an_argument_of_another_stack_is_called_so(
    make_blueprint: Make, changes: dict[str, Any], words: str
) -> None:
    """Red if the refusal says that the engine has no such argument, which is false."""
    [finding] = found(make_blueprint(**changes))
    assert words in finding.message
    assert "is not an argument of" not in finding.message


@pytest.mark.parametrize(
    ("engine", "name", "severity", "words"),
    [
        ("sglang", "api-key", "error", "callers have no key"),
        ("sglang", "admin-api-key", "error", "callers have no key"),
        ("sglang", "completion-template", "warning", "Dynamo's frontend writes prompts"),
        ("sglang", "ssl-certfile", "warning", "Dynamo's frontend answers requests"),
        ("sglang", "enable-cache-report", "warning", "always have these numbers"),
        ("sglang", "warmups", "warning", "starts and warms the engine itself"),
        ("sglang", "sampling-defaults", "warning", "send these parameters with each request"),
        ("vllm", "interleave-mm-strings", "warning", "Dynamo's frontend writes prompts"),
        ("vllm", "api-key", "error", "callers have no key"),
        ("tensorrtLlm", "tool-parser", "error", "set 'parsers' of the model"),
        ("tensorrtLlm", "reasoning-parser", "error", "set 'parsers' of the model"),
    ],
)
def test_arguments_of_a_server_that_does_not_run(
    make_blueprint: Make, engine: str, name: str, severity: str, words: str
) -> None:
    """Red if an argument passes that nothing reads, such as a key that protects nothing."""
    flag = catalog.engine(engine).flags.get(f"--{name}")
    value = "x" if flag is None or flag.takes_value else True
    [finding] = found(make_blueprint(engine={engine: {"args": {name: value}}}))
    assert (finding.severity, words in finding.message) == (severity, True), finding.message


def test_what_only_a_server_reads_passes_where_that_server_runs(make_blueprint: Make) -> None:
    args = {"interleave-mm-strings": True}
    assert found(make_blueprint(engine={"vllm": {"args": args}}, stack={"llmD": {}})) == []


@pytest.mark.parametrize("engine", ["vllm", "sglang", "tensorrtLlm"])
def test_the_arguments_that_are_named_instead_exist(make_blueprint: Make, engine: str) -> None:
    args = {"custom-jinja-template": "/own.jinja"}
    if engine != "tensorrtLlm":
        args["dyn-default-thinking-mode"] = "disabled"
    assert found(make_blueprint(engine={engine: {"args": args}})) == []
