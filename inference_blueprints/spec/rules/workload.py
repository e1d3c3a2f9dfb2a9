"""A rule on the length of requests."""

from __future__ import annotations

from collections.abc import Iterator

from inference_blueprints.spec.holes import usable
from inference_blueprints.spec.types import Spec, Workload
from inference_contracts.errors import Finding


def requests_fit_the_context(spec: Spec) -> Iterator[Finding]:
    """Check that a mean prompt and answer fit the context of the model."""
    for index, model in usable(spec.models):
        entry = model.weights.entry
        if entry and not entry.pipeline and _tokens(model.workload) > entry.context_length:
            message = (
                f"{_sum(model.workload)}, the context of {entry.name} is {entry.context_length}; "
                "lower inputTokens or outputTokens, or serve a model with a longer context"
            )
            yield Finding(("spec", "models", index, "workload"), message)


def _tokens(workload: Workload) -> int:
    return workload.input_tokens + workload.output_tokens


def _sum(workload: Workload) -> str:
    """Return the arithmetic."""
    terms = f"inputTokens {workload.input_tokens} + outputTokens {workload.output_tokens}"
    return f"{terms} = {_tokens(workload)} tokens"
