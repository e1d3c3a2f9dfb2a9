"""Sends requests to the models: to each deployment at its frontend, to each model at its address."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import aiohttp

from inference_blueprints.measure.completions.completion_client import UNREACHABLE
from inference_blueprints.measure.completions.served_models import (
    ListingFailedError,
    ServedModels,
    served_models,
)
from inference_blueprints.operate.check_results import CheckResult
from inference_blueprints.operate.kubernetes.kubectl import KubectlFailed
from inference_blueprints.operate.verify.endpoint_checks import CheckedEndpoint, ask
from inference_blueprints.operate.verify.serving_access import ServedPlatform
from inference_blueprints.serving.types import DeploymentPlan
from inference_blueprints.spec.types import Model

#: Maximum time in seconds for an answer at a model's name, which is reachable only in the VPC.
_ROUTE_SECONDS = 5.0


def answers(endpoint: CheckedEndpoint) -> list[CheckResult]:
    """Check one model and wait for all results."""
    return asyncio.run(_collected(ask(endpoint)))


async def _collected(results: AsyncIterator[CheckResult]) -> list[CheckResult]:
    return [result async for result in results]


def deployments(served: ServedPlatform) -> Iterator[CheckResult]:
    """Check every deployment of every model through its frontend."""
    for model, plan in zip(served.blueprint.spec.models, served.plan.models, strict=True):
        for deployment in plan.deployments:
            yield from _deployment(served, model, deployment)


def _deployment(served: ServedPlatform, model: Model, deployment: DeploymentPlan) -> Iterator[CheckResult]:
    """Check one deployment."""
    entry = deployment.entry_point
    ready = [each for each in served.access.instances(deployment)[entry.name] if each.is_ready]
    label = f"{model.name}/{deployment.name}"
    if not ready:
        yield CheckResult("tokens", "error", f"{label}: no {entry.name} is ready")
        return
    workers = sum(process.replicas for process in deployment.workers)
    try:
        with served.access.open_frontend(deployment, ready[0]) as base_url:
            yield from answers(CheckedEndpoint(label, base_url, model, workers, served.access.answer_seconds))
    except KubectlFailed as failure:
        message = f"{label}: {ready[0].name} cannot be reached: {' '.join(str(failure).split())}"
        yield CheckResult("tokens", "error", message)


def routes(served: ServedPlatform) -> Iterator[CheckResult]:
    """Check every model at the address that its callers use, which may be reachable only from the VPC."""
    for model in served.blueprint.spec.models:
        known = served.access.model_address(model.name)
        address = known.url
        try:
            names = asyncio.run(_listed(address.removesuffix("/v1"))).names
        except ListingFailedError as error:
            if known.only_in_vpc and error.reason in UNREACHABLE:
                message = f"{address} cannot be reached from here; run this within the VPC ({error})"
                yield CheckResult("routes", "unknown", message)
            else:
                message = f"{address} answers {error}; check what is behind its load balancer"
                yield CheckResult("routes", "error", message, known.command)
            continue
        if model.name in names:
            yield CheckResult("routes", "ok", f"{address} serves {model.name}")
        else:
            others = ", ".join(names) or "none"
            yield CheckResult("routes", "error", f"{address} serves {others}, not {model.name}")


async def _listed(base_url: str) -> ServedModels:
    async with aiohttp.ClientSession() as session:
        return await served_models(session, base_url, timeout_seconds=_ROUTE_SECONDS)
