"""What each engine is told: the same plan in its own words."""

from __future__ import annotations

import copy
import itertools
import json
from collections.abc import Callable
from typing import Any

import pytest
import yaml
from dynamo.trtllm.dynamic_flags import parse_dynamic_flags

import inference_catalog as catalog
from inference_blueprints import resources
from inference_blueprints.serving.checks.serving_checks import serving_findings
from inference_blueprints.serving.engines import ENGINES
from inference_blueprints.serving.engines.worker_sizing import worker_memory
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.serving.resolved import resolve
from inference_blueprints.serving.stacks.dynamo import DYNAMO_PARSERS, Dynamo
from inference_blueprints.serving.types import Process
from inference_blueprints.spec.types import Blueprint
from inference_contracts.errors import Finding

Make = Callable[..., Blueprint]

QWEN = {"huggingFace": "Qwen/Qwen3-8B"}


def disaggregated(engine: str, *, efa: bool = True) -> Blueprint:
    """Return the shipped disaggregated blueprint with another engine."""
    path = resources.blueprints_directory() / "p5en-disaggregated.yaml"
    document = copy.deepcopy(yaml.safe_load(path.read_text(encoding="utf-8")))
    document["spec"]["models"][0] |= {"engine": {engine: {}}, "weights": {"huggingFace": "Qwen/Qwen3-32B"}}
    if not efa:
        del document["spec"]["pools"][0]["efa"]
    return Blueprint.model_validate(document)


def workers_of(blueprint: Blueprint) -> tuple[Process, ...]:
    return build_plan(blueprint).models[0].deployments[0].workers


def options(process: Process) -> dict[str, str | None]:
    """Return the command line as values by flag; None for a switch."""
    words = [*process.arguments, "--"]
    return {
        word: None if following.startswith("--") else following
        for word, following in itertools.pairwise(words)
        if word.startswith("--")
    }


@pytest.mark.parametrize(
    ("accelerator", "tokens"),
    [
        ("l40s", 2048),
        ("a100-80gb", 2048),
        ("h100", 8192),
        ("h200", 8192),
        ("b200", 16384),
    ],
)
def test_steps_of_vllm_are_as_large_as_its_defaults(accelerator: str, tokens: int) -> None:
    """An A100 gets the smallest, however much memory it has (vllm-project/vllm#17885)."""
    assert ENGINES["vllm"].step_tokens(catalog.accelerators()[accelerator]) == tokens


def test_sglang_is_told_of_both_roles() -> None:
    prefill, decode = map(options, workers_of(disaggregated("sglang")))
    assert prefill == {
        "--model-path": "Qwen/Qwen3-32B",
        "--served-model-name": "qwen3-32b",
        "--tensor-parallel-size": "1",
        "--page-size": "64",
        "--context-length": "13312",
        "--max-running-requests": "64",
        "--chunked-prefill-size": "8192",
        "--mem-fraction-static": "0.866",
        "--enable-metrics": None,
        "--disaggregation-mode": "prefill",
        "--disaggregation-transfer-backend": "nixl",
        "--host": "0.0.0.0",  # noqa: S104 -- of a pod
        "--kv-events-config": '{"publisher":"zmq","topic":"kv-events","endpoint":"tcp://*:20080"}',
        "--dyn-reasoning-parser": "qwen3",
        "--dyn-tool-call-parser": "hermes",
        "--reasoning-parser": "qwen3",
    }
    assert decode == {
        **{key: value for key, value in prefill.items() if key not in {"--host", "--kv-events-config"}},
        "--tensor-parallel-size": "4",
        "--max-running-requests": "256",
        "--mem-fraction-static": "0.867",
        "--disaggregation-mode": "decode",
    }


def test_tensorrt_llm_is_told_of_both_roles() -> None:
    prefill, decode = map(options, workers_of(disaggregated("tensorrtLlm")))
    assert prefill == {
        "--model": "Qwen/Qwen3-32B",
        "--served-model-name": "qwen3-32b",
        "--tensor-parallel-size": "1",
        "--kv-block-size": "32",
        "--max-seq-len": "13312",
        "--max-batch-size": "64",
        "--max-num-tokens": "8192",
        "--free-gpu-memory-fraction": "0.811",
        "--trtllm.kv_cache_config.free_gpu_memory_fraction": "0.811",
        "--trtllm.kv_cache_config.tokens_per_block": "32",
        "--trtllm.kv_cache_config.enable_block_reuse": "true",
        "--trtllm.enable_chunked_prefill": "true",
        "--disaggregation-mode": "prefill",
        "--publish-metrics": None,
        "--trtllm.cache_transceiver_config.backend": "NIXL",
        "--trtllm.cache_transceiver_config.max_tokens_in_buffer": "13312",
        "--trtllm.disable_overlap_scheduler": "true",
        "--publish-kv-events": None,
        "--dyn-reasoning-parser": "qwen3",
        "--dyn-tool-call-parser": "hermes",
    }
    of_prefill = {"--trtllm.disable_overlap_scheduler", "--publish-kv-events"}
    assert decode == {
        **{key: value for key, value in prefill.items() if key not in of_prefill},
        "--tensor-parallel-size": "4",
        "--max-batch-size": "256",
        "--free-gpu-memory-fraction": "0.883",
        "--trtllm.kv_cache_config.free_gpu_memory_fraction": "0.883",
        "--disaggregation-mode": "decode",
    }


def test_the_keys_of_tensorrt_llm_reach_it_with_their_types() -> None:
    """As Dynamo's own reader of them says."""
    prefill = workers_of(disaggregated("tensorrtLlm"))[0]
    words = list(prefill.arguments)
    given = [
        part
        for flag, value in itertools.pairwise(words)
        if flag.startswith("--trtllm.")
        for part in (flag, value)
    ]
    assert parse_dynamic_flags(given) == {
        "kv_cache_config": {
            "free_gpu_memory_fraction": 0.811,
            "tokens_per_block": 32,
            "enable_block_reuse": True,
        },
        "enable_chunked_prefill": True,
        "cache_transceiver_config": {"backend": "NIXL", "max_tokens_in_buffer": 13312},
        "disable_overlap_scheduler": True,
    }


@pytest.mark.parametrize(
    ("engine", "variable"),
    [
        ("sglang", "SGLANG_DISAGGREGATION_NIXL_BACKEND"),
        ("tensorrtLlm", "TRTLLM_NIXL_KVCACHE_BACKEND"),
    ],
)
def test_the_cache_moves_over_efa_where_there_is_efa(
    engine: str, variable: str, make_blueprint: Make
) -> None:
    for worker in workers_of(disaggregated(engine)):
        assert worker.environment[variable] == "LIBFABRIC"
        assert worker.environment["FI_PROVIDER"] == "efa"
        assert worker.capabilities == ("IPC_LOCK",)
    [aggregated] = workers_of(make_blueprint(engine={engine: {}}))
    for worker in (*workers_of(disaggregated(engine, efa=False)), aggregated):
        assert not {variable, "FI_PROVIDER"} & worker.environment.keys()


@pytest.mark.parametrize("engine", sorted(Dynamo.frameworks))
def test_the_image_and_the_program_are_the_engine_s(engine: str, make_blueprint: Make) -> None:
    deployment = build_plan(make_blueprint(engine={engine: {}})).models[0].deployments[0]
    [worker] = deployment.workers
    known = catalog.engine(engine)
    assert worker.image == f"{known.image}:{known.version}"
    framework = {"vllm": "vllm", "sglang": "sglang", "tensorrtLlm": "trtllm"}[engine]
    assert worker.command == ("python3", "-m", f"dynamo.{framework}")
    assert deployment.framework == framework


@pytest.mark.parametrize("engine", sorted(ENGINES))
def test_what_the_plan_owns_is_a_flag_that_a_user_could_give(engine: str) -> None:
    flags = catalog.engine(engine).flags
    entry = catalog.engine(engine)
    given = (*entry.owned_arguments, *entry.ignored_arguments)
    unknown = [name for name in given if f"--{name}" not in flags]
    assert set(unknown) <= {"config"}


@pytest.mark.parametrize("engine", sorted(ENGINES))
def test_the_engine_has_the_flags_that_the_plan_computes_with(engine: str) -> None:
    words, flags = ENGINES[engine].argument_names, catalog.engine(engine).flags
    named = (*words.counts, words.memory_share, words.kv_cache_type, words.without_prefix_cache[0])
    assert {f"--{name}" for name in named if name} <= flags.keys()
    assert set(words.kv_cache_types) <= catalog.KV_CACHE_BYTES.keys()
    assert not set(named) & catalog.engine(engine).owned_arguments.keys()


@pytest.mark.parametrize("efa", [True, False])
def test_sglang_tells_of_its_transfers_by_nixl_s_own_exporter(*, efa: bool) -> None:
    """NIXL's default is 9090, where Dynamo's worker listens already."""
    for worker in workers_of(disaggregated("sglang", efa=efa)):
        assert {name: worker.environment[name] for name in worker.environment if "TELEMETRY" in name} == {
            "NIXL_TELEMETRY_ENABLE": "y",
            "NIXL_TELEMETRY_EXPORTER": "prometheus",
            "NIXL_TELEMETRY_PROMETHEUS_PORT": "19090",
        }
        assert [(port.name, port.number) for port in worker.ports] == [
            ("system", 9090),
            ("nixl-metrics", 19090),
        ]


@pytest.mark.parametrize("engine", ["vllm", "tensorrtLlm"])
def test_an_exporter_that_would_end_a_worker_s_processes_is_left_out(engine: str) -> None:
    """NIXL 1.3 and 1.4 fail in every process of a worker but the first; both engines count by themselves."""
    for worker in workers_of(disaggregated(engine)):
        assert not [name for name in worker.environment if name.startswith("NIXL_TELEMETRY")]
        assert [port.name for port in worker.ports] == ["system"]


def test_tensorrt_llm_logs_what_moves_the_kv_cache() -> None:
    """Its back end is told at a level that it does not log by default."""
    for worker in workers_of(disaggregated("tensorrtLlm")):
        assert worker.environment["TLLM_LOG_LEVEL"] == "INFO"


@pytest.mark.parametrize("engine", sorted(Dynamo.frameworks))
def test_what_the_plan_gives_is_owned_or_the_users_to_set(engine: str) -> None:
    words = ENGINES[engine].argument_names
    parsers = DYNAMO_PARSERS
    settable = {*words.counts, words.memory_share, words.without_prefix_cache[0]}
    settable |= {
        "enable-prefix-caching",
        "enable-metrics",
        "trtllm.enable_chunked_prefill",
        "publish-metrics",
        "reasoning-parser",
        *(parsers.reasoning, parsers.tool_call),
    }
    for worker in workers_of(disaggregated(engine)):
        given = {flag.removeprefix("--") for flag in options(worker)}
        assert given <= catalog.engine(engine).owned_arguments.keys() | settable


def found(blueprint: Blueprint) -> list[Finding]:
    return [finding for finding in serving_findings(blueprint) if finding.severity == "error"]


@pytest.mark.parametrize(
    ("engine", "name", "value", "message"),
    [
        ("vllm", "trust-remote-code", True, "the plan sets 'trust-remote-code' itself; code that comes with"),
        (
            "sglang",
            "trust-remote-code",
            True,
            "the plan sets 'trust-remote-code' itself; code that comes with",
        ),
        ("sglang", "tp-size", 2, "the plan sets 'tp-size' itself; set tensorParallelSize"),
        ("sglang", "max-model-len", 8192, "got 'max-model-len', which is not an argument of sglang 0.5.21"),
        (
            "sglang",
            "context-length",
            2048,
            "got 2048, the workload needs 3200 tokens: inputTokens 3000 + outputTokens",
        ),
        ("sglang", "context-length", 50_000, "got 50000, but the context of Qwen/Qwen3-8B is 40960"),
        ("sglang", "page-size", 0, "got 0, must be a whole number above 0"),
        ("sglang", "mem-fraction-static", 1.5, "got 1.5, must be a number above 0 and at most 1"),
        ("sglang", "mem-fraction-static", 0.97, "got 0.97, which leaves less of each l40s than the"),
        (
            "sglang",
            "kv-cache-dtype",
            "fp8",
            "got 'fp8', allowed are auto, bf16, bfloat16, fp8_e4m3, fp8_e5m2",
        ),
        ("sglang", "disable-radix-cache", True, "got true, but KV-aware routing needs the cache"),
        (
            "tensorrtLlm",
            "override-engine-args",
            "{}",
            "the plan sets 'override-engine-args' itself; write its",
        ),
        (
            "tensorrtLlm",
            "trtllm.trust_remote_code",
            "true",
            "got 'trtllm.trust_remote_code', which is not an argument of Dynamo's workers with tensorrtLlm",
        ),
        # `trtllm-serve` has it, and Dynamo's workers do not start that server.
        (
            "tensorrtLlm",
            "tool_parser",
            "qwen3",
            "got 'tool_parser', which is not an argument of Dynamo's workers with tensorrtLlm",
        ),
        (
            "tensorrtLlm",
            "max-seq-len",
            50_000,
            "got 50000, but the context of Qwen/Qwen3-8B is 40960; lower it",
        ),
        ("tensorrtLlm", "max-seq-len", 2048, "got 2048, the workload needs 3200 tokens"),
        ("tensorrtLlm", "free-gpu-memory-fraction", 0, "got 0, must be a number above 0 and at most 1"),
        ("tensorrtLlm", "trtllm.kv_cache_config.dtype", "fp8_e4m3", "got 'fp8_e4m3', allowed are auto, fp8"),
        (
            "tensorrtLlm",
            "trtllm.kv_cache_config.enable_block_reuse",
            "false",
            "got false, but KV-aware routing needs the cache",
        ),
    ],
)
def test_a_wrong_argument_is_named_at_its_place(
    engine: str, name: str, value: Any, message: str, make_blueprint: Make
) -> None:
    [finding] = found(make_blueprint(engine={engine: {"args": {name: value}}}))
    assert finding.path == ("spec", "models", 0, "engine", engine, "args", name)
    assert finding.message.startswith(message)


@pytest.mark.parametrize("engine", ["sglang", "tensorrtLlm"])
def test_an_image_that_cannot_stream_weights_is_not_asked_to(engine: str, make_blueprint: Make) -> None:
    weights = {"s3": "s3://weights/qwen/", "catalog": "Qwen/Qwen3-8B"}
    [finding] = found(make_blueprint(engine={engine: {}}, weights=weights))
    assert finding.path == ("spec", "models", 0, "weights", "s3")
    assert f"the image of {engine} cannot stream weights from S3" in finding.message
    assert found(make_blueprint(weights=weights)) == []


@pytest.mark.parametrize("engine", sorted(Dynamo.frameworks))
def test_every_engine_fills_the_same_memory(engine: str, make_blueprint: Make) -> None:
    own, vllm = (resolve(make_blueprint(engine={key: {}}), 0, 0)[0] for key in (engine, "vllm"))
    assert worker_memory(own).total_bytes == worker_memory(vllm).total_bytes
    [worker] = workers_of(make_blueprint(engine={engine: {}}))
    words = ENGINES[engine].argument_names
    share = float(options(worker)[f"--{words.memory_share}"] or 0)
    told = resolve(make_blueprint(engine={engine: {"args": {words.memory_share: share}}}), 0, 0)[0]
    device = told.accelerator.memory_bytes
    assert 0 <= (worker_memory(own).total_bytes - worker_memory(told).total_bytes) / device < 0.0011


@pytest.mark.parametrize("engine", sorted(Dynamo.frameworks))
def test_eight_bit_numbers_double_the_cache(engine: str, make_blueprint: Make) -> None:
    words = ENGINES[engine].argument_names
    kind = "fp8" if "fp8" in words.kv_cache_types else "fp8_e4m3"
    plain, small = (
        workers_of(make_blueprint(engine={engine: {"args": arguments}}))[0].engine
        for arguments in ({}, {words.kv_cache_type: kind})
    )
    assert plain is not None
    assert small is not None
    assert small.kv_blocks == pytest.approx(2 * plain.kv_blocks, abs=1)


def test_a_commit_reaches_both_halves_of_tensorrt_llm(make_blueprint: Make) -> None:
    [worker] = workers_of(make_blueprint(engine={"tensorrtLlm": {}}, weights={**QWEN, "revision": "b968826"}))
    assert (options(worker)["--revision"], options(worker)["--trtllm.revision"]) == ("b968826", "b968826")
    [worker] = workers_of(make_blueprint(engine={"sglang": {}}, weights={**QWEN, "revision": "b968826"}))
    assert options(worker)["--revision"] == "b968826"


def test_the_configuration_of_kv_events_is_what_sglang_reads() -> None:
    """Its class for it has no ``enable_kv_cache_events``, which vLLM needs."""
    prefill = workers_of(disaggregated("sglang"))[0]
    events = json.loads(options(prefill)["--kv-events-config"] or "")
    assert events.keys() <= {"publisher", "endpoint", "replay_endpoint", "buffer_steps", "hwm", "topic"}
