"""Writes a latency profile for the simulated engine."""

from __future__ import annotations

from pathlib import Path

import numpy

from inference_catalog import LatencyProfile


def write_profile(profile: LatencyProfile, path: Path) -> Path:
    """Write the arrays of ``dynamo.mocker --planner-profile-data``.

    A worker that starts at the same time reads the whole file, because an existing one is replaced at once.

    path: The file, which ends in ``.npz``.
    """
    draft = path.with_name(f"draft of {path.name}")
    numpy.savez(
        draft,
        prefill_isl=numpy.asarray(profile.prefill_isl, float),
        prefill_ttft_ms=numpy.asarray(profile.prefill_ttft_ms, float),
        decode_active_kv_tokens=numpy.asarray(profile.decode_active_kv_tokens, float),
        decode_context_length=numpy.asarray(profile.decode_context_length, float),
        decode_itl=numpy.asarray(profile.decode_itl, float),
    )
    draft.replace(path)
    return path
