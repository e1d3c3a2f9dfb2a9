"""All checks of a deployed platform, one after the other, and those of a single endpoint."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from inference_blueprints.deployment.account import Account
from inference_blueprints.deployment.cluster_access import connect
from inference_blueprints.deployment.doctor import access
from inference_blueprints.deployment.doctor.patient import Patient
from inference_blueprints.deployment.observation import Checks, Observation, observations
from inference_blueprints.deployment.verify import (
    answers,
    entrance,
    inference_pools,
    nodes,
    pods,
    releases,
)
from inference_blueprints.deployment.verify.account_checks import ACCOUNT_CHECKS
from inference_blueprints.deployment.verify.assembly import assemble
from inference_blueprints.deployment.verify.kv_transfer import kv_transfer, transferred
from inference_blueprints.deployment.verify.questions import Respondent
from inference_blueprints.deployment.verify.subject import ClusterReader, Platform, RunningPlatform
from inference_blueprints.errors import UserError
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.spec.types import Blueprint

#: By the name that observations carry, in the order in which they are shown. Models are asked before their
#: router's picks and their KV transfer are looked at, for without a question nothing is picked or moved.
CLUSTER_CHECKS: Checks[RunningPlatform] = {
    "nodes": nodes.nodes,
    "pools": nodes.pools,
    "device plug-ins": releases.device_plug_ins,
    "charts": releases.charts,
    "weights": releases.weights,
    "workers": pods.workers,
    "inference pools": inference_pools.members,
    "routes": answers.routes,
    "tokens": answers.deployments,
    "picks": inference_pools.picks,
    "KV transfer": kv_transfer,
}


def verify(blueprint: Blueprint, name_or_path: str) -> Iterator[Observation]:
    """Iterate over what all checks of a deployed platform see.

    Without usable credentials nothing else is asked, and without the API server nothing of the cluster;
    what was not looked at is named.

    Parameters
    ----------
    blueprint
        What was deployed.
    name_or_path
        How the user named it.

    Raises
    ------
    UserError
        If the blueprint cannot be synthesised.
    """
    account = Account(blueprint.spec.environment.region)
    credentials = access.credentials(Patient(account, blueprint, name_or_path))
    yield credentials
    if credentials.severity == "error":
        return
    platform = Platform(account, blueprint, build_plan(blueprint), assemble(name_or_path), name_or_path)
    yield from observations(ACCOUNT_CHECKS, platform)
    with tempfile.TemporaryDirectory() as folder:
        try:
            kubectl = connect(account, platform.name, Path(folder))
        except UserError as error:
            yield Observation(entrance.CHECK, "error", str(error), platform.deploy_command)
            yield from _not_looked_at()
            return
        yield from verify_cluster(platform, kubectl)


def verify_cluster(platform: Platform, kubectl: ClusterReader) -> Iterator[Observation]:
    """Iterate over what the checks of a platform's cluster see.

    Parameters
    ----------
    platform
        The platform.
    kubectl
        Its cluster, with the user's own rights.
    """
    opened = entrance.look_in(platform, kubectl)
    yield opened
    if opened.severity == "ok":
        running = RunningPlatform(platform, kubectl)
        yield from observations(CLUSTER_CHECKS, replace(running, transferred=transferred(running)))
    else:
        yield from _not_looked_at()


def verify_endpoint(blueprint: Blueprint, model_name: str | None, endpoint: str) -> list[Observation]:
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
    return answers.answers(Respondent(chosen, base_url, blueprint.spec.models[index], workers))


def _not_looked_at() -> Iterator[Observation]:
    """Name every check that needs the API server."""
    for name in CLUSTER_CHECKS:
        yield Observation(name, "unknown", "not looked at: that needs the API server")
