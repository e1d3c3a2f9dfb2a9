"""Measured speed of a model on an accelerator, in the format of Dynamo's simulated engine."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LatencyProfile:
    """Duration of prefill and decode for one model, accelerator and tensor parallel size.

    The arrays are those of ``dynamo.mocker --planner-profile-data``; their values are predictions from
    aiconfigurator's database of measured operators, so figures made from them are simulated.
    """

    model: str
    accelerator: str
    tensor_parallel_size: int
    """`model`, `accelerator`, `tensor_parallel_size`: The measured combination: Hugging Face id, catalogue
    name, number of devices."""
    system: str
    backend: str
    backend_version: str
    """`system`, `backend`, `backend_version`: aiconfigurator's names: system, engine, and the engine release
    of its data."""
    date: str
    source: str
    """`date`, `source`: Date and tool of the profile."""
    mean_error_percent: float
    largest_error_percent: float
    """`mean_error_percent`, `largest_error_percent`: Errors of values half way between the points of the
    tables, compared with the database. The largest errors are at steps of the hardware, such as a batch that
    needs one more wave of blocks."""
    prefill_isl: tuple[float, ...]
    """Input lengths in tokens."""
    prefill_ttft_ms: tuple[float, ...]
    """Time to first token in milliseconds for each length, with one request at a time."""
    decode_active_kv_tokens: tuple[float, ...]
    decode_context_length: tuple[float, ...]
    """`decode_active_kv_tokens`, `decode_context_length`: Axes of the decode table: tokens in the KV cache of
    all running requests, and mean tokens per request."""
    decode_itl: tuple[tuple[float, ...], ...]
    """Milliseconds per decode step, ``[active KV tokens][context length]``."""
