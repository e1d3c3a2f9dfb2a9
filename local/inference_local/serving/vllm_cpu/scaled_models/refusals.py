"""Models that vLLM cannot run on a CPU, with the reason."""

from __future__ import annotations

from inference_catalog import Model
from inference_contracts.errors import UserError
from inference_local.serving.vllm_cpu.scaled_models.tables import document, scaled_architecture


def refusal(model: Model) -> str | None:
    """Return why vLLM on a CPU cannot run a scaled model of this architecture.

    Parameters
    ----------
    model
        The catalogue's description of the real model.

    Returns
    -------
    str or None
        The reason, without the model's name. None if it runs.
    """
    refused = document("refused")["architectures"]
    if model.architecture in refused:
        return str(refused[model.architecture]["reason"])
    try:
        scaled_architecture(model)
    except UserError:
        return f"there is no scaled-down model of its architecture, {model.architecture}"
    return None
