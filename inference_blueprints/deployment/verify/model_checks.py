"""Sends requests to the models: to each deployment through the API server, to each model by its name."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import aiohttp

from inference_blueprints.deployment.check_results import CheckResult
from inference_blueprints.deployment.kubernetes.kubectl import KubectlFailed
from inference_blueprints.deployment.kubernetes.port_forwarding import forwarded
from inference_blueprints.deployment.verify.endpoint_checks import CheckedEndpoint, ask
from inference_blueprints.deployment.verify.pod_checks import pods_of
from inference_blueprints.deployment.verify.verified_platform import RunningPlatform, holds
from inference_blueprints.measurement.completions.completion_client import UNREACHABLE
from inference_blueprints.measurement.completions.served_models import (
    ListingFailedError,
    ServedModels,
    served_models,
)
from inference_blueprints.serving.types import DeploymentPlan
from inference_blueprints.spec.types import Model

#: Maximum time in seconds for an answer at a model's name, which is reachable only in the VPC.
_ROUTE_SECONDS = 5.0


def answers(endpoint: CheckedEndpoint) -> list[CheckResult]:
    """Check one model and wait for all results."""
    return asyncio.run(_collected(ask(endpoint)))


async def _collected(results: AsyncIterator[CheckResult]) -> list[CheckResult]:
    return [result async for result in results]


def deployments(running: RunningPlatform) -> Iterator[CheckResult]:
    """Check every deployment of every model through its frontend."""
    spec = running.platform.blueprint.spec
    for model, plan in zip(spec.models, running.platform.plan.models, strict=True):
        for deployment in plan.deployments:
            yield from _deployment(running, model, deployment)


def _deployment(running: RunningPlatform, model: Model, deployment: DeploymentPlan) -> Iterator[CheckResult]:
    """Check one deployment."""
    entry, namespace = deployment.entry_point, running.namespace(deployment.release)
    pods = pods_of(running, deployment)[entry.name]
    ready = [pod["metadata"]["name"] for pod in pods if holds(pod, "Ready")]
    label = f"{model.name}/{deployment.name}"
    if not ready:
        yield CheckResult("tokens", "error", f"{label}: no {entry.name} is ready")
        return
    workers = sum(process.replicas for process in deployment.workers)
    try:
        with forwarded(running.kubectl, namespace, ready[0], entry.ports[0].number) as base_url:
            yield from answers(CheckedEndpoint(label, base_url, model, workers))
    except KubectlFailed as failure:
        message = f"{label}: {ready[0]} cannot be reached: {' '.join(str(failure).split())}"
        yield CheckResult("tokens", "error", message)


def routes(running: RunningPlatform) -> Iterator[CheckResult]:
    """Check every model at the address that its callers use, which is reachable only from the VPC."""
    for model in running.platform.blueprint.spec.models:
        template = running.platform.assembly.templates[f"{running.platform.name}-Model-{model.name}"]
        address = template["Outputs"]["Endpoint"]["Value"]
        try:
            served = asyncio.run(_served(address.removesuffix("/v1")))
        except ListingFailedError as error:
            if error.reason in UNREACHABLE:
                message = f"{address} cannot be reached from here; run this within the VPC ({error})"
                yield CheckResult("routes", "unknown", message)
            else:
                message = f"{address} answers {error}; check the targets of its load balancer"
                command = running.platform.aws("elbv2 describe-target-groups")
                yield CheckResult("routes", "error", message, command)
            continue
        if model.name in served.names:
            yield CheckResult("routes", "ok", f"{address} serves {model.name}")
        else:
            names = ", ".join(served.names) or "none"
            yield CheckResult("routes", "error", f"{address} serves {names}, not {model.name}")


async def _served(base_url: str) -> ServedModels:
    async with aiohttp.ClientSession() as session:
        return await served_models(session, base_url, timeout_seconds=_ROUTE_SECONDS)
