"""Says what of local serving is real and what is simulated."""

from __future__ import annotations

from collections.abc import Iterable

from inference_blueprints.local.parts import Part
from inference_blueprints.local.serving.isolation import Isolation
from inference_blueprints.local.serving.layout import LocalDeployment


def describe(deployments: Iterable[LocalDeployment], isolation: Isolation) -> tuple[Part, ...]:
    """Return the lines of the table of parts.

    Parameters
    ----------
    deployments
        All that is served.
    isolation
        Where its processes run.
    """
    lines = [line for deployment in deployments for line in (_frontend(deployment), _engines(deployment))]
    return (*lines, _weights(), _network(isolation))


def _frontend(deployment: LocalDeployment) -> Part:
    frontend = deployment.frontend
    return Part(
        f"Frontend and router of {deployment.plan.release}",
        "real",
        f"{frontend.replicas} × NVIDIA Dynamo's own, with the arguments of the plan: "
        f"{' '.join(frontend.arguments)}; in place of the load balancer a relay takes turns by connection",
    )


def _engines(deployment: LocalDeployment) -> Part:
    accelerator = deployment.accelerator.name if deployment.accelerator else "no accelerator"
    processes = deployment.workers_by_process
    shared = "one process each" if max(processes) == 1 else f"in {len(processes)} processes"
    profile = deployment.profile
    latencies = (
        f"latencies simulated for {profile.model} on {profile.accelerator} × {profile.tensor_parallel_size} "
        f"from {profile.source} ({profile.date}; within {profile.largest_error_percent:.0f} % of its points)"
        if profile
        else f"latencies are the simulator's default curve and not those of {accelerator}: "
        "no throughput or price follows from them"
    )
    return Part(
        f"Engines of {deployment.plan.release}",
        "simulated",
        f"{deployment.worker.replicas} × {deployment.settings.engine} by Dynamo's mocker, {shared}; {latencies}",
    )


def _weights() -> Part:
    return Part(
        "Weights and tokenizer",
        "simulated",
        "answers are random words, a tokenizer of our own counts tokens; an answer's length must be asked for "
        "(max_tokens)",
    )


def _network(isolation: Isolation) -> Part:
    if isolation.holder is not None:
        return Part(
            "Network of the models",
            "real",
            "a network namespace with loopback alone; its endpoint is relayed to 127.0.0.1",
        )
    return Part(
        "Network of the models",
        "stubbed",
        f"not isolated ({isolation.reason}): Dynamo's event sockets listen on all interfaces of this machine; "
        "the endpoint itself is on 127.0.0.1",
    )
