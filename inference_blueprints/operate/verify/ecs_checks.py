"""Checks of a deployed platform on Amazon ECS. They ask AWS alone: its tasks have no API server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from inference_blueprints.operate.check_results import CheckResult, Checks
from inference_blueprints.operate.ecs_cluster import (
    EcsObject,
    cluster_exists,
    hosts,
    serves,
    services,
    tags_of,
)
from inference_blueprints.operate.ecs_reasons import problem_of, reasons_of
from inference_blueprints.operate.verify.verified_platform import VerifiedPlatform
from inference_contracts.task_tags import METRICS_ADDRESS_TAG, METRICS_PORT_TAG

#: Tasks of one call (Amazon ECS API Reference, DescribeTasks).
_TASKS = 100


def cluster(platform: VerifiedPlatform) -> Iterator[CheckResult]:
    """Check that the cluster exists."""
    if cluster_exists(platform.account, platform.name):
        yield CheckResult("cluster", "ok", f"{platform.name} is active")
    else:
        message = f"there is no active ECS cluster {platform.name} in {platform.account.region}"
        yield CheckResult("cluster", "error", message, platform.deploy_command)


def steady_services(platform: VerifiedPlatform) -> Iterator[CheckResult]:
    """Check that each service runs as many tasks as it wants, of its newest deployment alone, or say why not.

    ``rolloutState``: Amazon ECS API Reference, Deployment. A service that CodeDeploy or an external program
    deploys has none.
    """
    found = services(platform.account, platform.name)
    if not found:
        message = "the cluster has no services"
        yield CheckResult("services", "error", message, platform.deploy_command)
        return
    unsteady = [each for each in found if problem_of(each)]
    for service in unsteady:
        name = service["serviceName"]
        why = "; ".join(reasons_of(platform.account, platform.name, service)) or "AWS says no reason"
        command = platform.aws(f"ecs describe-services --cluster {platform.name} --services {name}")
        yield CheckResult("services", "error", f"{name}: {problem_of(service)}: {why}", command)
    if not unsteady:
        tasks = sum(each["runningCount"] for each in found)
        yield CheckResult("services", "ok", f"{len(found)} services run their {tasks} tasks")


def healthy_hosts(platform: VerifiedPlatform) -> Iterator[CheckResult]:
    """Check that agents are connected and that ECS finds no fault of a host.

    ``healthStatus``: Amazon ECS API Reference, ContainerInstanceHealthStatus.
    """
    found = hosts(platform.account, platform.name)
    problems = 0
    for host in found:
        name = host["ec2InstanceId"]
        command = platform.aws(
            f"ecs describe-container-instances --cluster {platform.name} "
            f"--container-instances {host['containerInstanceArn']} --include CONTAINER_INSTANCE_HEALTH"
        )
        health = host.get("healthStatus", {})
        if not host["agentConnected"]:
            yield CheckResult("hosts", "error", f"the ECS agent of {name} is not connected", command)
        elif health.get("overallStatus") == "IMPAIRED":
            kinds = [each["type"] for each in health.get("details", []) if each["status"] == "IMPAIRED"]
            yield CheckResult("hosts", "error", f"{name} is impaired: {', '.join(kinds)}", command)
        elif host["status"] != "ACTIVE":
            yield CheckResult("hosts", "warning", f"{name} is {host['status']}: it takes no tasks", command)
        else:
            continue
        problems += 1
    if not problems:
        yield CheckResult("hosts", "ok", f"{len(found)} are connected and not impaired")


def load_balancer_targets(platform: VerifiedPlatform) -> Iterator[CheckResult]:
    """Check that the load balancer finds a healthy frontend behind each service that it reaches."""
    client = platform.account.client("elbv2")
    reached = 0
    for service in services(platform.account, platform.name):
        for group in {each["targetGroupArn"] for each in service.get("loadBalancers", [])}:
            described = client.describe_target_health(TargetGroupArn=group)["TargetHealthDescriptions"]
            healthy = [each for each in described if each["TargetHealth"]["State"] == "healthy"]
            if healthy:
                reached += 1
                continue
            reasons = {str(each["TargetHealth"].get("Description", "no reason")) for each in described}
            message = (
                f"no target of {service['serviceName']} is healthy: {', '.join(sorted(reasons)) or 'none'}"
            )
            command = platform.aws(f"elbv2 describe-target-health --target-group-arn {group}")
            yield CheckResult("targets", "error", message, command)
    if reached:
        yield CheckResult("targets", "ok", f"{reached} services have healthy targets")


def measured_tasks(platform: VerifiedPlatform) -> Iterator[CheckResult]:
    """Check that tasks of models have the tag with the address of their metrics."""
    client = platform.account.client("ecs")
    silent: list[str] = []
    tasks = 0
    for service in services(platform.account, platform.name):
        if not serves(service):
            continue
        for task in _tasks(client, platform.name, service["serviceName"]):
            tasks += 1
            if not tags_of(task).keys() & {METRICS_ADDRESS_TAG, METRICS_PORT_TAG}:
                silent.append(str(task["taskArn"]).rsplit("/", 1)[-1])
    if silent:
        message = (
            f"{len(silent)} of {tasks} tasks did not say where their metrics are: {', '.join(silent[:5])}"
        )
        yield CheckResult("metrics", "error", f"{message}; their loads do not count for scaling")
    else:
        yield CheckResult("metrics", "ok", f"{tasks} tasks say where their metrics are")


def _tasks(client: Any, cluster_name: str, service: str) -> Iterator[EcsObject]:
    pages = client.get_paginator("list_tasks").paginate(
        cluster=cluster_name, serviceName=service, desiredStatus="RUNNING"
    )
    for page in pages:
        arns = page["taskArns"]
        for start in range(0, len(arns), _TASKS):
            answer = client.describe_tasks(
                cluster=cluster_name, tasks=arns[start : start + _TASKS], include=["TAGS"]
            )
            yield from (each for each in answer["tasks"] if each["lastStatus"] == "RUNNING")


def scaled_services(platform: VerifiedPlatform) -> Iterator[CheckResult]:
    """Check that nobody suspended the scaling of an elastic service."""
    pages = platform.account.client("application-autoscaling").get_paginator("describe_scalable_targets")
    found = [
        target
        for page in pages.paginate(ServiceNamespace="ecs")
        for target in page["ScalableTargets"]
        if target["ResourceId"].startswith(f"service/{platform.name}/")
    ]
    suspended = [each for each in found if any(each.get("SuspendedState", {}).values())]
    for target in suspended:
        command = platform.aws(
            "application-autoscaling register-scalable-target --service-namespace ecs --scalable-dimension "
            f"ecs:service:DesiredCount --resource-id {target['ResourceId']} --suspended-state "
            "DynamicScalingInSuspended=false,DynamicScalingOutSuspended=false,ScheduledScalingSuspended=false"
        )
        name = target["ResourceId"].rsplit("/", 1)[-1]
        yield CheckResult("scaling", "warning", f"somebody suspended the scaling of {name}", command)
    elastic = sum(
        process.scaling is not None
        for model in platform.plan.models
        for deployment in model.deployments
        for process in deployment.processes
    )
    if len(found) < elastic:
        message = f"{elastic} roles are elastic, {len(found)} services are registered for scaling"
        yield CheckResult("scaling", "error", message, platform.deploy_command)
    elif not suspended:
        yield CheckResult("scaling", "ok", f"{len(found)} services follow their load")


#: Checks by the name in their results, in the order of the output.
ECS_CHECKS: Checks[VerifiedPlatform] = {
    "cluster": cluster,
    "services": steady_services,
    "hosts": healthy_hosts,
    "targets": load_balancer_targets,
    "metrics": measured_tasks,
    "scaling": scaled_services,
}
