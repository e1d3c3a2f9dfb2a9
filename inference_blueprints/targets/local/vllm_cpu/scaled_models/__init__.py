"""Scaled-down models with random weights, one shape for each architecture of the catalogue."""

from inference_blueprints.catalog import Model
from inference_blueprints.targets.local.vllm_cpu.scaled_models.model_directory import write_scaled_model

__all__ = ["refusal", "write_scaled_model"]


def refusal(model: Model) -> str | None:  # noqa: ARG001
    """Placeholder until the list of architectures is merged."""
    return None
