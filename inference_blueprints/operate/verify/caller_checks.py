"""Checks that nobody gets around the front door: entry points refuse strangers, certificates are renewed."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from inference_blueprints.operate.check_results import CheckResult
from inference_blueprints.operate.kubernetes import KubectlFailed
from inference_blueprints.operate.verify.serving_access import deployments_of
from inference_blueprints.operate.verify.verified_platform import RunningPlatform, VerifiedPlatform, holds
from inference_blueprints.serving.types import DeploymentPlan
from inference_blueprints.serving.types.callers import AdmittedCallers
from inference_contracts.door_identities import BEHIND_PORT, CALLERS_PORT

CHECK: Final = "known callers"
CERTIFICATE_CHECK: Final = "caller certificates"
_MODELS: Final = "/v1/models"
#: A certificate lives for 14 days and is renewed after seven, by a build that runs every day.
_RENEWED_WITHIN: Final = timedelta(days=9)


def known_callers(running: RunningPlatform) -> Iterator[CheckResult]:
    """Ask each entry point as a stranger: the API server connects to its pod, without a certificate of ours.

    It follows the address of the pod, so what listens at the loopback address only does not answer it
    (Kubernetes API Reference, Pod, "connect GET requests to proxy of Pod").
    """
    for deployment in deployments_of(running):
        admitted = deployment.entry_point.callers
        if admitted is None:
            continue
        pods = running.access.pods(deployment)[deployment.entry_point.name]
        for pod in pods:
            if holds(pod, "Ready"):
                yield from _stranger(running, deployment, admitted, pod["metadata"]["name"])


def _stranger(
    running: RunningPlatform, deployment: DeploymentPlan, admitted: AdmittedCallers, pod: str
) -> Iterator[CheckResult]:
    """Check one pod."""
    path = f"/api/v1/namespaces/{running.platform.namespace(deployment.release)}/pods"
    command = running.access.look_command(deployment, deployment.entry_point)

    def answers(scheme: str, port: int, page: str) -> str | None:
        """Return why there was no answer; None if there was one."""
        try:
            running.kubectl.run("get", "--raw", f"{path}/{scheme}:{pod}:{port}/proxy{page}")
        except KubectlFailed as failure:
            return " ".join(str(failure).split())
        return None

    unhealthy = answers("http", admitted.open_port, admitted.health_paths[0])
    if unhealthy and "forbidden" in unhealthy.lower():
        message = f"{pod} was not asked: your role may not connect to pods through the API server"
        yield CheckResult(CHECK, "unknown", message)
        return
    if unhealthy:
        message = f"{pod} does not answer its health check at port {admitted.open_port}: {unhealthy}"
        yield CheckResult(CHECK, "error", message, command)
        return
    old, plain = admitted.old_names_until, ("http", admitted.open_port)
    doors = [
        ("http", BEHIND_PORT),
        ("http", CALLERS_PORT),
        ("https", CALLERS_PORT),
        *([] if old else [plain]),
    ]
    opened = [(scheme, port) for scheme, port in doors if answers(scheme, port, _MODELS) is None]
    for scheme, port in opened:
        message = f"{pod} answers {scheme}://…:{port}{_MODELS} to a caller without a certificate"
        yield CheckResult(CHECK, "error", message, command)
    if old and answers(*plain, _MODELS) is None:
        message = f"{pod} answers everybody at port {admitted.open_port} until {old}; remove 'oldHostNames'"
        yield CheckResult(CHECK, "warning", message)
    elif not opened:
        yield CheckResult(CHECK, "ok", f"{pod} refuses callers without a certificate")


def caller_certificates(platform: VerifiedPlatform) -> Iterator[CheckResult]:
    """Check that each certificate was written not long ago. Nobody has to read one for that."""
    if platform.plan.front_door is None:
        return
    stack = f"{platform.name}-Certificates"
    client = platform.account.client("secretsmanager")
    resources = platform.account.client("cloudformation").get_paginator("list_stack_resources")
    found = 0
    late: list[str] = []
    for page in resources.paginate(StackName=stack):
        for resource in page["StackResourceSummaries"]:
            name = resource["LogicalResourceId"]
            if resource["ResourceType"] != "AWS::SecretsManager::Secret" or "Authority" in name:
                continue
            found += 1
            described = client.describe_secret(SecretId=resource["PhysicalResourceId"])
            if platform.now - described["LastChangedDate"] > _RENEWED_WITHIN:
                late.append(described["Description"].removeprefix("Certificate of "))
    if late:
        message = (
            f"{len(late)} of {found} certificates were not renewed for more than {_RENEWED_WITHIN.days} "
            f"days: {', '.join(late[:5])}; callers are refused when they end"
        )
        command = platform.aws(f"cloudformation describe-stack-resources --stack-name {stack}")
        yield CheckResult(CERTIFICATE_CHECK, "error", message, command)
    elif found:
        yield CheckResult(CERTIFICATE_CHECK, "ok", f"{found} certificates are renewed in time")
    else:
        message = f"the stack {stack} has no certificates"
        yield CheckResult(CERTIFICATE_CHECK, "error", message, platform.deploy_command)
