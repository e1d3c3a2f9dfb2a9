"""Warns of objectives that a model's latency profile shows to be out of reach."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from inference_blueprints.errors import Finding
from inference_blueprints.serving.performance.least_latency import (
    least_time_per_output_token_ms,
    time_to_first_token_ms,
)
from inference_blueprints.serving.resolved import ResolvedWorkers


def objective_findings(roles: Sequence[ResolvedWorkers]) -> Iterator[Finding]:
    """Check that one request alone meets the objectives of its deployment.

    The profile's speed without other requests is a lower bound: with more requests, each takes longer.
    Without a profile nothing is known, and nothing is reported.

    Parameters
    ----------
    roles
        Workers of every role of a deployment.
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
            least_time_per_output_token_ms,
            "a token",
        ),
    )
    for key, wanted, least_of, what in limits:
        least = least_of(workers) if wanted is not None else None
        if wanted is not None and least is not None and least > wanted:
            message = (
                f"got {wanted:g}, but {what} of deployment '{roles[0].deployment.name}' takes "
                f"{least:.1f} ms even "
                "with no other request, according to the model's latency profile; raise it, or use more or "
                "faster accelerators per worker"
            )
            yield Finding((*roles[0].model_path, "objectives", key), message, "warning")
