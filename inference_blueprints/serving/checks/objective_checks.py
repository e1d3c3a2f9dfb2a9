"""Warns of objectives that a latency profile, or the memory of a processor, shows to be out of reach."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from inference_blueprints.serving.engines.llama_cpp import bound_tokens_per_second
from inference_blueprints.serving.performance.least_latency import (
    min_time_per_output_token_ms,
    time_to_first_token_ms,
)
from inference_blueprints.serving.resolved import ResolvedWorkers
from inference_contracts.errors import Finding


def objective_findings(roles: Sequence[ResolvedWorkers]) -> Iterator[Finding]:
    """Check that one request alone meets the objectives of its deployment.

    The profile's speed without other requests is a lower bound: with more requests, each takes longer.
    Without a profile, only the memory of processors sets a bound.

    roles: Workers of every role of a deployment.
    """
    model, workers = roles[0].model, tuple(roles)
    limits = (
        (
            "timeToFirstTokenP90Ms",
            model.objectives.time_to_first_token_p90_ms,
            time_to_first_token_ms,
            "the prefill of a mean prompt",
        ),
        (
            "timePerOutputTokenP90Ms",
            model.objectives.time_per_output_token_p90_ms,
            min_time_per_output_token_ms,
            "a token",
        ),
    )
    for key, wanted, least_of, what in limits:
        minimum = least_of(workers) if wanted is not None else None
        if wanted is not None and minimum is not None and minimum > wanted:
            message = (
                f"got {wanted:g}, but {what} of deployment '{roles[0].deployment.name}' takes "
                f"{minimum:.1f} ms even "
                "with no other request, according to the model's latency profile; raise it, or use more or "
                "faster accelerators per worker"
            )
            yield Finding((*roles[0].model_path, "objectives", key), message, "warning")
    bound = bound_tokens_per_second(roles[-1])
    wanted_ms = model.objectives.time_per_output_token_p90_ms
    if bound is not None and wanted_ms is not None and 1000 / bound > wanted_ms:
        yield Finding(
            (*roles[0].model_path, "objectives", "timePerOutputTokenP90Ms"),
            f"got {wanted_ms:g}, but the memory of {roles[-1].types[0].name} takes at least "
            f"{1000 / bound:.1f} ms to read the weights for a token; raise it, or use larger instance "
            "types or smaller weights",
            "warning",
        )
