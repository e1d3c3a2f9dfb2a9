"""All checks of a deployed platform in order, and the checks of a single endpoint."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from inference_blueprints.operate.aws.account import Account
from inference_blueprints.operate.check_results import CheckResult, Checks, run_checks
from inference_blueprints.operate.doctor import access_checks
from inference_blueprints.operate.doctor.doctor_context import DoctorContext
from inference_blueprints.operate.kubernetes import connect
from inference_blueprints.operate.verify import (
    caller_checks,
    endpoint_checks,
    inference_pool_checks,
    kv_transfer_checks,
    node_checks,
    release_checks,
    worker_checks,
)
from inference_blueprints.operate.verify.account_checks import ACCOUNT_CHECKS, EVERYWHERE_CHECKS
from inference_blueprints.operate.verify.ecs_checks import ECS_CHECKS
from inference_blueprints.operate.verify.endpoint_checks import CheckedEndpoint
from inference_blueprints.operate.verify.kv_transfer_checks import kv_transfer, read_transfers
from inference_blueprints.operate.verify.synthesised_platform import assemble
from inference_blueprints.operate.verify.verified_platform import (
    ClusterReader,
    RunningPlatform,
    VerifiedPlatform,
)
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.spec.named_model import named_model
from inference_blueprints.spec.types import Blueprint
from inference_contracts.errors import UserError

#: Checks by the name in their results, in the order of the output. Requests to models come before the checks
#: of router and KV transfer, because without requests nothing is routed or transferred.
CLUSTER_CHECKS: Checks[RunningPlatform] = {
    "nodes": node_checks.nodes,
    "node images": node_checks.node_images,
    "pools": node_checks.pools,
    "device plug-ins": release_checks.device_plug_ins,
    "charts": release_checks.charts,
    "weights": release_checks.weights,
    "workers": worker_checks.workers,
    "metrics": worker_checks.scraped_pods,
    "streamed weights": worker_checks.streamed_weights,
    "inference pools": inference_pool_checks.members,
    caller_checks.CHECK: caller_checks.known_callers,
    "routes": endpoint_checks.routes,
    "tokens": endpoint_checks.deployments,
    "requests": worker_checks.requests,
    "picks": inference_pool_checks.picks,
    "KV transfer": kv_transfer,
    "EFA memory": kv_transfer_checks.memory_registration,
    "EFA bandwidth": kv_transfer_checks.bandwidth,
}


def verify(blueprint: Blueprint, name_or_path: str) -> Iterator[CheckResult]:
    """Iterate over the results of all checks of a deployed platform.

    Without usable credentials, nothing else is checked. Without the API server, the cluster is not checked,
    and each skipped check has a result.

    name_or_path: Name or path of the blueprint.
    Raises UserError if the blueprint cannot be synthesised.
    """
    account = Account(blueprint.spec.environment.region)
    now = datetime.now(UTC)
    credentials = access_checks.credentials(DoctorContext(account, blueprint, name_or_path, now))
    yield credentials
    if credentials.severity == "error":
        return
    platform = VerifiedPlatform(
        account, blueprint, build_plan(blueprint), assemble(name_or_path), name_or_path, now
    )
    if blueprint.spec.cluster.chosen == "ecs":
        yield from run_checks({**EVERYWHERE_CHECKS, **ECS_CHECKS}, platform)
        yield from _models_not_asked(blueprint)
        return
    yield from run_checks(ACCOUNT_CHECKS, platform)
    with tempfile.TemporaryDirectory() as folder:
        try:
            kubectl = connect(account, platform.name, Path(folder))
        except UserError as error:
            yield CheckResult(node_checks.CHECK, "error", str(error), platform.deploy_command)
            yield from _not_looked_at()
            return
        yield from verify_cluster(platform, kubectl)


def _models_not_asked(blueprint: Blueprint) -> Iterator[CheckResult]:
    """Yield what only a machine in the VPC can check: there is no API server that would forward a port."""
    for model in blueprint.spec.models:
        message = (
            f"{model.name} was not asked: its load balancer answers only in the VPC; check it from there"
        )
        yield CheckResult(
            "tokens", "unknown", message, f"blueprints verify --model {model.name} --endpoint URL"
        )


def verify_cluster(platform: VerifiedPlatform, kubectl: ClusterReader) -> Iterator[CheckResult]:
    """Iterate over the results of all checks of a platform's cluster.

    kubectl: Client of the cluster with the user's permissions.
    """
    opened = node_checks.look_in(platform, kubectl)
    yield opened
    if opened.severity == "ok":
        running = RunningPlatform(platform, kubectl)
        yield from run_checks(CLUSTER_CHECKS, read_counters(running))
    else:
        yield from _not_looked_at()


def read_counters(running: RunningPlatform) -> RunningPlatform:
    """Return a platform with the present counters of its workers, before requests are sent."""
    return replace(running, transferred=read_transfers(running), answered=worker_checks.answered(running))


def verify_endpoint(blueprint: Blueprint, model_name: str | None, endpoint: str) -> list[CheckResult]:
    """Check one endpoint at any address: tokens, cache hits and objectives.

    blueprint: Blueprint with the model's workload and objectives.
    model_name: A name of a model of the blueprint; None if it has exactly one.
    endpoint: Address such as ``http://127.0.0.1:8000``, with or without ``/v1``.
    Raises UserError if the blueprint has no such model, or several and none is named.
    """
    index, name = named_model(blueprint.spec.models, model_name)
    model = blueprint.spec.models[index]
    plan = build_plan(blueprint).models[index]
    workers = sum(process.replicas for deployment in plan.deployments for process in deployment.workers)
    base_url = endpoint.rstrip("/").removesuffix("/v1")
    return endpoint_checks.answers(CheckedEndpoint(model.name, base_url, model, workers, asked=name))


def _not_looked_at() -> Iterator[CheckResult]:
    """Yield a result for every check that needs the API server."""
    for name in CLUSTER_CHECKS:
        yield CheckResult(name, "unknown", "not checked: this needs the API server")
