"""Describes which parts of local serving are real and which are simulated."""

from __future__ import annotations

from collections.abc import Iterable

from inference_local.serving.isolation import Isolation
from inference_local.serving.local_deployment import LocalDeployment, LocalWorkers
from inference_local.serving.platform_parts import PlatformPart


def describe(deployments: Iterable[LocalDeployment], isolation: Isolation) -> tuple[PlatformPart, ...]:
    """Return the rows of the table of parts.

    deployments: All deployments.
    isolation: The network namespace of their processes.
    """
    lines = [
        line
        for deployment in deployments
        for line in (
            *deployment.frontend.parts(deployment.plan.release),
            *(
                part
                for workers in deployment.workers
                for part in (
                    _engines(deployment, workers),
                    *workers.sidecar_parts(deployment.plan.release),
                )
            ),
            _answers(deployment),
        )
    ]
    return (*lines, _network(isolation))


def in_short(deployments: Iterable[LocalDeployment]) -> str:
    """Return how real the engines and their entry points are, such as ``engines simulated, router real``."""
    states: dict[str, list[str]] = {}
    for deployment in deployments:
        entry = deployment.frontend.parts(deployment.plan.release)[0]
        noun = entry.name.partition(" of ")[0]
        for name, state in (
            *(("engines", workers.state) for workers in deployment.workers),
            (noun[0].lower() + noun[1:], entry.state),
        ):
            states.setdefault(name, []).append(state)
    return ", ".join(f"{name} {' and '.join(dict.fromkeys(found))}" for name, found in states.items())


def _engines(deployment: LocalDeployment, workers: LocalWorkers) -> PlatformPart:
    return PlatformPart(
        f"Engines of {deployment.plan.release}{_of_role(workers)}", workers.state, workers.detail
    )


def _of_role(workers: LocalWorkers) -> str:
    return "" if workers.role == "worker" else f", {workers.role}"


def _answers(deployment: LocalDeployment) -> PlatformPart:
    return PlatformPart(
        f"Weights and tokenizer of {deployment.plan.release}",
        "simulated",
        f"{deployment.workers[0].answers}; "
        f"a request without max_tokens gets {deployment.answer_tokens} tokens, the workload's mean"
        + _images(deployment),
    )


def _images(deployment: LocalDeployment) -> str:
    """Describe the handling of images, if requests may contain any."""
    if deployment.images is None or not deployment.images.per_request:
        return ""
    tokens = deployment.images.tokens
    return f"; images are not fetched, each counts as {tokens} words, and encoding takes no time"


def _network(isolation: Isolation) -> PlatformPart:
    if isolation.holder is not None:
        return PlatformPart(
            "Network of the models",
            "real",
            "a network namespace with only a loopback interface, relayed to 127.0.0.1",
        )
    return PlatformPart(
        "Network of the models",
        "stubbed",
        f"no namespace ({isolation.reason}): Dynamo's event sockets listen on all interfaces of this "
        "machine; the endpoint is on 127.0.0.1",
    )
