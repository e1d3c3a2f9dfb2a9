"""The frontend processes of a local run, and the routes of the relay that lead to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from inference_local.serving.local_deployment import LocalDeployment
from inference_local.serving.relay import Route


@dataclass(frozen=True, slots=True)
class FrontendProcess:
    """One frontend process and the port on which it listens, inside the namespace."""

    name: str
    deployment: LocalDeployment
    port: int

    @property
    def weight(self) -> float:
        """Its share of the model's requests: the accelerators behind it."""
        return self.deployment.plan.accelerator_count / self.deployment.frontend.replicas


def routes(frontends: Sequence[FrontendProcess], mark: str) -> dict[str, Route]:
    """Return a route to each frontend, and one route per model to all of its frontends in turn.

    mark: Kind of the engines, for the header of responses.
    """
    by_model: dict[str, list[FrontendProcess]] = {}
    for frontend in frontends:
        by_model.setdefault(frontend.deployment.model.name, []).append(frontend)
    alone = {frontend.name: _route([(frontend, 1.0)], mark) for frontend in frontends}
    together = {
        model: _route([(frontend, frontend.weight) for frontend in group], mark)
        for model, group in by_model.items()
    }
    return {**alone, **together}


def _route(weighted: Sequence[tuple[FrontendProcess, float]], mark: str) -> Route:
    first = weighted[0][0].deployment
    ports = tuple((frontend.port, weight) for frontend, weight in weighted)
    structured = tuple(
        frontend.port for frontend, _ in weighted if frontend.deployment.answers_with_structure_apart
    )
    return Route(ports, first.answer_tokens, first.images, mark, structured=structured)
