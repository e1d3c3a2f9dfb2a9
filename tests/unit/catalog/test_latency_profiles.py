"""Latency profiles: tables that the simulated engine can read, of entries that the catalogue has."""

import itertools
import json

import pytest

import inference_catalog as catalog
from inference_catalog.catalogue import shipped

DIRECTORY = shipped().directory / "latency_profiles"
FILES = sorted(DIRECTORY.rglob("*.json"))
REQUIRED = [
    ("Qwen/Qwen3-0.6B", "l40s", 1, "vllm"),
    ("Qwen/Qwen3-1.7B", "l40s", 1, "vllm"),
    ("Qwen/Qwen3-4B", "l40s", 1, "vllm"),
    ("Qwen/Qwen3-8B", "l40s", 1, "vllm"),
    ("Qwen/Qwen3-32B", "h200", 1, "vllm"),
    ("Qwen/Qwen3-32B", "h200", 2, "vllm"),
    ("Qwen/Qwen3-32B", "h200", 4, "vllm"),
    ("Qwen/Qwen3-32B", "l40s", 4, "vllm"),
    ("Qwen/Qwen3-32B", "l40s", 8, "vllm"),
    *(("Qwen/Qwen3-32B", "b300", 1, engine) for engine in ("vllm", "sglang")),
    *(("Qwen/Qwen3-235B-A22B-FP8", "b300", size, "sglang") for size in (1, 4)),
    *(("Qwen/Qwen3-VL-30B-A3B-Instruct", "b300", 1, engine) for engine in ("vllm", "sglang")),
    ("Qwen/Qwen3-VL-30B-A3B-Instruct-FP8", "b300", 1, "sglang"),
]

#: NVIDIA's data sheets.
MEMORY_GIGABYTES_PER_SECOND = {
    "l40s": 864,
    "rtx-pro-6000": 1597,
    "h100": 3350,
    "h200": 4800,
    "b200": 8000,
    "b300": 8000,
}


@pytest.fixture(params=FILES, ids=lambda path: str(path.relative_to(DIRECTORY)))
def profile(request: pytest.FixtureRequest) -> catalog.LatencyProfile:
    """Each shipped profile, found the way the plan finds it."""
    stated = json.loads(request.param.read_text(encoding="utf-8"))
    model, accelerator, size = stated["model"], stated["accelerator"], stated["tensor_parallel_size"]
    engine = request.param.relative_to(DIRECTORY).parts[0]
    found = catalog.latency_profile(model, accelerator, size, engine)
    assert found is not None
    assert request.param == DIRECTORY / engine / model / f"{accelerator}-tp{size}.json"
    return found


@pytest.mark.parametrize("wanted", REQUIRED)
def test_profiles_that_blueprints_use_are_there(wanted: tuple[str, str, int, str]) -> None:
    assert catalog.latency_profile(*wanted) is not None


@pytest.mark.parametrize(
    "unknown",
    [
        # Products of FP8 blocks were measured in no SGLang on L40S: "available: bfloat16, fp8".
        ("Qwen/Qwen3-VL-30B-A3B-Instruct-FP8", "l40s", 2, "sglang"),
        # Those of vLLM have the host's time in them: 0.3 ms for one token and 0.2 ms for 4,096 on B300, where
        # the same kernel takes 0.01 and 0.06 ms in SGLang; 0.32 ms for 1 to 256 tokens on L40S.
        ("Qwen/Qwen3-VL-30B-A3B-Instruct-FP8", "l40s", 2, "vllm"),
        ("Qwen/Qwen3-VL-30B-A3B-Instruct-FP8", "b300", 1, "vllm"),
        ("Qwen/Qwen3-235B-A22B-FP8", "b300", 1, "vllm"),
        ("Qwen/Qwen3-235B-A22B-FP8", "b300", 4, "vllm"),
    ],
)
def test_what_nobody_measured_is_unknown(unknown: tuple[str, str, int, str]) -> None:
    """Bug: the speed of another engine or device was taken. Sources: gemm_perf of aiconfigurator 0.12.0."""
    assert catalog.latency_profile(*unknown) is None


def test_a_combination_that_was_not_recorded_has_none() -> None:
    assert catalog.latency_profile("Qwen/Qwen3-8B", "t4g", 1, "vllm") is None


def test_it_is_of_entries_that_exist(profile: catalog.LatencyProfile) -> None:
    assert catalog.model(profile.model)
    assert catalog.accelerator(profile.accelerator).performance_system == profile.system


def test_axes_rise(profile: catalog.LatencyProfile) -> None:
    for axis in (profile.prefill_isl, profile.decode_active_kv_tokens, profile.decode_context_length):
        assert all(low < high for low, high in itertools.pairwise(axis))


def test_tables_have_the_shape_of_their_axes(profile: catalog.LatencyProfile) -> None:
    assert len(profile.prefill_ttft_ms) == len(profile.prefill_isl) >= 2
    assert len(profile.decode_itl) == len(profile.decode_active_kv_tokens) >= 2
    assert {len(row) for row in profile.decode_itl} == {len(profile.decode_context_length)}


def test_more_work_takes_longer(profile: catalog.LatencyProfile) -> None:
    assert profile.prefill_ttft_ms[-1] > profile.prefill_ttft_ms[0] > 0
    for column in zip(*profile.decode_itl, strict=True):
        known = [value for value in column if value is not None]
        assert known[-1] > known[0] > 0
        assert column[: len(known)] == tuple(known), "gaps are at the end only"


def test_tables_end_where_the_measurements_end(profile: catalog.LatencyProfile) -> None:
    """Bug: prefills of 32,768 tokens came from attention that was measured to 16,384."""
    ends = dict(profile.measured_to)
    assert profile.max_prompt_tokens <= min(end for name, end in ends.items() if "generation" not in name)
    assert profile.max_context_tokens <= ends["generation_attention_perf"]
    context = profile.max_context_tokens
    largest = profile.max_active_kv_tokens(context)
    assert profile.covers(prompt_tokens=16_384, context_tokens=context, active_kv_tokens=largest)
    assert not profile.covers(prompt_tokens=16_385)
    assert not profile.covers(context_tokens=context + 1)
    assert not profile.covers(context_tokens=context, active_kv_tokens=largest + 1)


def test_the_error_of_reading_it_is_stated(profile: catalog.LatencyProfile) -> None:
    assert 0 < profile.mean_error_percent < 6
    assert profile.mean_error_percent < profile.largest_error_percent < 30


def test_files_stay_small() -> None:
    assert max(path.stat().st_size for path in FILES) < 8192


def test_qwen3_8b_on_l40s_has_the_database_s_latencies() -> None:
    profile = catalog.latency_profile("Qwen/Qwen3-8B", "l40s", 1, "vllm")
    assert profile is not None
    prefill = dict(zip(profile.prefill_isl, profile.prefill_ttft_ms, strict=True))
    measured = {512: 69.1, 2048: 172.7, 4096: 348.5, 8192: 757.8}
    assert {length: prefill[length] for length in measured} == pytest.approx(measured, abs=0.1)


def test_decoding_is_bound_by_reading_the_weights(profile: catalog.LatencyProfile) -> None:
    """A profile of untuned kernels, twenty times slower than reading the weights, is not shipped."""
    model = catalog.model(profile.model)
    active_share = model.active_parameters_billion / model.parameters_billion
    gigabytes = model.weight_bytes * active_share / profile.tensor_parallel_size / 1e9
    first = profile.decode_itl[0][0]
    assert first is not None
    gigabytes_per_second = gigabytes / (first / 1000)
    assert gigabytes_per_second > MEMORY_GIGABYTES_PER_SECOND[profile.accelerator] / 20
    assert gigabytes_per_second < MEMORY_GIGABYTES_PER_SECOND[profile.accelerator]
