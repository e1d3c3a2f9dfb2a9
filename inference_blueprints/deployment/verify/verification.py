"""All checks of a deployed platform, one after the other, and those of a single endpoint."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from inference_blueprints.deployment.aws.account import Account
from inference_blueprints.deployment.check_results import CheckResult, Checks, run_checks
from inference_blueprints.deployment.doctor import access_checks
from inference_blueprints.deployment.doctor.doctor_context import DoctorContext
from inference_blueprints.deployment.kubernetes.cluster_connection import connect
from inference_blueprints.deployment.verify import (
    api_server_checks,
    inference_pool_checks,
    model_checks,
    node_checks,
    pod_checks,
    release_checks,
)
from inference_blueprints.deployment.verify.account_checks import ACCOUNT_CHECKS
from inference_blueprints.deployment.verify.endpoint_checks import CheckedEndpoint
from inference_blueprints.deployment.verify.kv_transfer_checks import kv_transfer, transferred
from inference_blueprints.deployment.verify.synthesised_platform import assemble
from inference_blueprints.deployment.verify.verified_platform import (
    ClusterReader,
    RunningPlatform,
    VerifiedPlatform,
)
from inference_blueprints.errors import UserError
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.spec.types import Blueprint

#: By the name that results carry, in the order in which they are shown. Models are asked before their
#: router's picks and their KV transfer are looked at, for without a question nothing is picked or moved.
CLUSTER_CHECKS: Checks[RunningPlatform] = {
    "nodes": node_checks.nodes,
    "pools": node_checks.pools,
    "device plug-ins": release_checks.device_plug_ins,
    "charts": release_checks.charts,
    "weights": release_checks.weights,
    "workers": pod_checks.workers,
    "inference pools": inference_pool_checks.members,
    "routes": model_checks.routes,
    "tokens": model_checks.deployments,
    "picks": inference_pool_checks.picks,
    "KV transfer": kv_transfer,
}


def verify(blueprint: Blueprint, name_or_path: str) -> Iterator[CheckResult]:
    """Iterate over what all checks of a deployed platform see.

    Without usable credentials nothing else is asked, and without the API server nothing of the cluster;
    what was not looked at is named.

    Parameters
    ----------
    name_or_path
        How the user named it.

    Raises
    ------
    UserError
        If the blueprint cannot be synthesised.
    """
    account = Account(blueprint.spec.environment.region)
    credentials = access_checks.credentials(DoctorContext(account, blueprint, name_or_path))
    yield credentials
    if credentials.severity == "error":
        return
    platform = VerifiedPlatform(
        account, blueprint, build_plan(blueprint), assemble(name_or_path), name_or_path
    )
    yield from run_checks(ACCOUNT_CHECKS, platform)
    with tempfile.TemporaryDirectory() as folder:
        try:
            kubectl = connect(account, platform.name, Path(folder))
        except UserError as error:
            yield CheckResult(api_server_checks.CHECK, "error", str(error), platform.deploy_command)
            yield from _not_looked_at()
            return
        yield from verify_cluster(platform, kubectl)


def verify_cluster(platform: VerifiedPlatform, kubectl: ClusterReader) -> Iterator[CheckResult]:
    """Iterate over what the checks of a platform's cluster see.

    Parameters
    ----------
    kubectl
        Its cluster, with the user's own rights.
    """
    opened = api_server_checks.look_in(platform, kubectl)
    yield opened
    if opened.severity == "ok":
        running = RunningPlatform(platform, kubectl)
        yield from run_checks(CLUSTER_CHECKS, replace(running, transferred=transferred(running)))
    else:
        yield from _not_looked_at()


def verify_endpoint(blueprint: Blueprint, model_name: str | None, endpoint: str) -> list[CheckResult]:
    """Ask one endpoint, wherever it is: tokens, cache hits and objectives.

    Parameters
    ----------
    blueprint
        Says what the model is promised.
    model_name
        Model of the blueprint; None where it has but one.
    endpoint
        Such as ``http://127.0.0.1:8000``, with or without ``/v1``.

    Raises
    ------
    UserError
        If the blueprint has no such model, or several and none is named.
    """
    names = [model.name for model in blueprint.spec.models]
    if model_name is None and len(names) > 1:
        raise UserError(f"the blueprint has several models; name one with --model: {', '.join(names)}")
    chosen = model_name or names[0]
    if chosen not in names:
        raise UserError(f"--model: got {chosen!r}, the blueprint's models are {', '.join(names)}")
    index = names.index(chosen)
    plan = build_plan(blueprint).models[index]
    workers = sum(process.replicas for deployment in plan.deployments for process in deployment.workers)
    base_url = endpoint.rstrip("/").removesuffix("/v1")
    return model_checks.answers(CheckedEndpoint(chosen, base_url, blueprint.spec.models[index], workers))


def _not_looked_at() -> Iterator[CheckResult]:
    """Name every check that needs the API server."""
    for name in CLUSTER_CHECKS:
        yield CheckResult(name, "unknown", "not looked at: that needs the API server")
