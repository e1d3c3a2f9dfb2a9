"""The file has the arrays that the simulated engine looks for."""

import dataclasses
from pathlib import Path

import numpy

import inference_catalog as catalog
from inference_blueprints.measure.simulation.simulated_workers import write_profile

# dynamo.mocker's is_mocker_format_npz (1.6.1) asks for exactly these.
_ARRAYS = {
    "prefill_isl",
    "prefill_ttft_ms",
    "decode_active_kv_tokens",
    "decode_context_length",
    "decode_itl",
}


def test_every_array_arrives_in_its_shape(tmp_path: Path) -> None:
    profile = catalog.latency_profile("Qwen/Qwen3-8B", "l40s", 1, "vllm")
    assert profile is not None
    with numpy.load(write_profile(profile, tmp_path / "latencies.npz")) as arrays:
        assert set(arrays) == _ARRAYS
        for name in _ARRAYS:
            numpy.testing.assert_allclose(arrays[name], getattr(profile, name))


def test_steps_that_nobody_measured_follow_a_line(tmp_path: Path) -> None:
    """Bug: the simulated engine read a gap as not a number, and every step of a full worker took 1 ms."""
    profile = catalog.latency_profile("Qwen/Qwen3-8B", "l40s", 1, "vllm")
    assert profile is not None
    gapped = dataclasses.replace(
        profile,
        decode_active_kv_tokens=(0.0, 100.0, 200.0, 400.0),
        decode_context_length=(1.0, 10.0),
        decode_itl=((1.0, 1.0), (2.0, 3.0), (None, 5.0), (None, None)),
    )
    with numpy.load(write_profile(gapped, tmp_path / "latencies.npz")) as arrays:
        assert arrays["decode_itl"].tolist() == [[1, 1], [2, 3], [3, 5], [5, 9]]


def test_whole_numbers_become_floats_too(tmp_path: Path) -> None:
    profile = catalog.latency_profile("Qwen/Qwen3-8B", "l40s", 1, "vllm")
    assert profile is not None
    whole = dataclasses.replace(profile, prefill_ttft_ms=tuple(range(len(profile.prefill_ttft_ms))))
    with numpy.load(write_profile(whole, tmp_path / "latencies.npz")) as arrays:
        assert arrays["prefill_ttft_ms"].dtype == float
