"""Measured speed of a model on an accelerator, in the shape that Dynamo's simulated engine reads."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LatencyProfile:
    """How long prefill and decode take for one model, accelerator and tensor parallel size.

    The arrays are those of ``dynamo.mocker --planner-profile-data``; their values are predictions from
    aiconfigurator's database of measured operators, so figures made from them are simulated.

    Parameters
    ----------
    model, accelerator, tensor_parallel_size
        What was measured: Hugging Face id, catalogue name, devices.
    system, backend, backend_version
        aiconfigurator's names: its system, engine and the engine release that its data was measured with.
    date, source
        When and with what the profile was made.
    mean_error_percent, largest_error_percent
        Errors of reading the tables half way between their nodes, against the database itself. The largest
        ones are steps of the hardware, such as a batch that needs one more wave of blocks.
    prefill_isl
        Input lengths in tokens.
    prefill_ttft_ms
        Time to first token in milliseconds, one a length, one request alone.
    decode_active_kv_tokens, decode_context_length
        Axes of the decode plane: tokens in the KV cache of all running requests, and mean tokens of one.
    decode_itl
        Milliseconds a decode step, ``[active KV tokens][context length]``.
    """

    model: str
    accelerator: str
    tensor_parallel_size: int
    system: str
    backend: str
    backend_version: str
    date: str
    source: str
    mean_error_percent: float
    largest_error_percent: float
    prefill_isl: tuple[float, ...]
    prefill_ttft_ms: tuple[float, ...]
    decode_active_kv_tokens: tuple[float, ...]
    decode_context_length: tuple[float, ...]
    decode_itl: tuple[tuple[float, ...], ...]
