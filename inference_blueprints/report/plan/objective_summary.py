"""Compares objectives with the plan's own figures."""

from __future__ import annotations

from collections.abc import Iterator

from inference_blueprints.report.figures import ObjectiveCheck, TokenPrice
from inference_blueprints.serving.performance.least_latency import time_to_first_token_ms
from inference_blueprints.serving.resolved import ResolvedWorkers


def objective_checks(
    roles: tuple[ResolvedWorkers, ...], price: TokenPrice | None
) -> Iterator[ObjectiveCheck]:
    """Yield the objectives of a deployment with the plan's figures.

    Parameters
    ----------
    roles
        Workers of every role of the deployment.
    price
        The deployment's figures at the stated peak; None without a latency profile.
    """
    model, deployment = roles[0].model, roles[0].deployment.name
    first, each = (
        model.objectives.time_to_first_token_p90_ms,
        model.objectives.time_per_output_token_p90_ms,
    )
    if first is not None:
        yield ObjectiveCheck(
            model.name, deployment, "timeToFirstTokenP90Ms", first, time_to_first_token_ms(roles)
        )
    if each is not None:
        planned = price.time_per_output_token_ms if price else None
        yield ObjectiveCheck(model.name, deployment, "timePerOutputTokenP90Ms", each, planned)
