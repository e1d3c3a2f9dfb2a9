"""Scaled-down models with random weights, one shape for each architecture of the catalogue."""

from inference_local.serving.vllm_cpu.scaled_models.scaled_directory import (
    write_scaled_draft,
    write_scaled_model,
)
from inference_local.serving.vllm_cpu.scaled_models.tables import refusal

__all__ = ["refusal", "write_scaled_draft", "write_scaled_model"]
