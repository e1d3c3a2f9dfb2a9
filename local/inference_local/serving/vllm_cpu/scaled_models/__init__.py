"""Scaled-down models with random weights, one shape for each architecture of the catalogue."""

from inference_local.serving.vllm_cpu.scaled_models.tables import (
    refusal,
    write_scaled_draft,
    write_scaled_model,
)

__all__ = ["refusal", "write_scaled_draft", "write_scaled_model"]
