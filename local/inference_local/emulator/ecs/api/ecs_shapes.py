"""Names and answers of the ECS API.

Sources: the API's model in botocore, and "Amazon Resource Names (ARNs) and IDs" of ECS.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from inference_local.emulator.ecs.control.cluster_state import (
    STARTING,
    ClusterState,
    EcsDeployment,
    EcsInstance,
    EcsService,
    EcsTask,
    TaskStatus,
)
from inference_local.emulator.ecs.control.service_scheduler import FARGATE
from inference_local.emulator.ecs.control.task_placement import free_resources

#: Fields of CreateService that DescribeServices shows as they were given, with their defaults.
_GIVEN: Mapping[str, Any] = {
    "loadBalancers": [],
    "placementConstraints": [],
    "placementStrategy": [],
    "schedulingStrategy": "REPLICA",
    "enableECSManagedTags": False,
    "propagateTags": "NONE",
    "deploymentConfiguration": {"maximumPercent": 200, "minimumHealthyPercent": 100},
}
_OPTIONAL = (
    *("capacityProviderStrategy", "launchType", "networkConfiguration", "healthCheckGracePeriodSeconds"),
    *("availabilityZoneRebalancing", "enableExecuteCommand", "platformVersion", "roleArn"),
)


@dataclass(frozen=True)
class EcsShapes:
    """Builds answers."""

    region: str
    account: str
    """`region`, `account`: Parts of ARNs."""
    wall_time: Callable[[float], float]
    """Turns a time of the control plane's clock into seconds since 1970."""

    def arn(self, kind: str, cluster: str, identifier: str) -> str:
        """Return the ARN of a resource; ``cluster`` is empty for those outside of clusters."""
        middle = f"{kind}/{cluster}/" if cluster else f"{kind}/"
        return f"arn:aws:ecs:{self.region}:{self.account}:{middle}{identifier}"

    def service(self, cluster: ClusterState, service: EcsService, desired: int) -> dict[str, Any]:
        """Return a Service."""
        tasks = cluster.tasks_of(service.name)
        answer: dict[str, Any] = {
            "serviceArn": self.arn("service", cluster.name, service.name),
            "serviceName": service.name,
            "clusterArn": self.arn("cluster", "", cluster.name),
            "status": service.status,
            "desiredCount": desired,
            **_counts(tasks),
            "taskDefinition": service.primary.task_definition,
            "deployments": [self._deployment(service, each, tasks, desired) for each in service.deployments],
            "events": [
                {"id": identifier, "createdAt": self.wall_time(at), "message": message}
                for at, identifier, message in service.events
            ],
            "createdAt": self.wall_time(service.created_at),
            "deploymentController": {"type": "ECS"},
            "tags": _tags(service.tags),
        }
        answer.update({name: service.request.get(name, default) for name, default in _GIVEN.items()})
        answer.update({name: service.request[name] for name in _OPTIONAL if name in service.request})
        return answer

    def task(self, cluster: ClusterState, task: EcsTask) -> dict[str, Any]:
        """Return a Task."""
        instance = cluster.instances.get(task.instance or "")
        is_fargate = task.provider in FARGATE
        answer: dict[str, Any] = {
            "taskArn": self.arn("task", cluster.name, task.identifier),
            "clusterArn": self.arn("cluster", "", cluster.name),
            "taskDefinitionArn": task.definition["taskDefinitionArn"],
            "group": task.group,
            "startedBy": task.started_by,
            "lastStatus": str(task.status),
            "desiredStatus": str(task.wanted),
            "healthStatus": str(task.health),
            "launchType": "FARGATE" if is_fargate else "EC2",
            "cpu": str(task.needs.cpu),
            "memory": str(task.needs.memory_mib),
            "version": task.version,
            "connectivity": "DISCONNECTED" if instance and not instance.agent_connected else "CONNECTED",
            "overrides": dict(task.overrides),
            "enableExecuteCommand": task.runs_commands,
            "attachments": self._attachments(task),
            "tags": _tags(task.tags),
            "containers": [
                self._container(cluster, task, each) for each in task.definition["containerDefinitions"]
            ],
        }
        if task.provider:
            answer["capacityProviderName"] = task.provider
        if task.instance:
            answer["containerInstanceArn"] = self.arn("container-instance", cluster.name, task.instance)
        if instance:
            answer["availabilityZone"] = instance.zone
        if task.stop_code:
            answer["stopCode"] = str(task.stop_code)
            answer["stoppedReason"] = task.stopped_reason
        times = {
            "createdAt": task.created_at,
            "startedAt": task.running_at,
            "stoppingAt": task.stopping_at,
            "stoppedAt": task.stopped_at,
        }
        answer.update({name: self.wall_time(at) for name, at in times.items() if at is not None})
        return answer

    def instance(self, cluster: ClusterState, instance: EcsInstance) -> dict[str, Any]:
        """Return a ContainerInstance."""
        tasks = cluster.tasks_on(instance.identifier)
        free = free_resources(instance, tasks)
        return {
            "containerInstanceArn": self.arn("container-instance", cluster.name, instance.identifier),
            "ec2InstanceId": instance.ec2_id,
            "capacityProviderName": instance.provider,
            "status": instance.status,
            "agentConnected": instance.agent_connected,
            "runningTasksCount": sum(task.is_live and task.status is TaskStatus.RUNNING for task in tasks),
            "pendingTasksCount": sum(task.status in STARTING for task in tasks),
            "registeredAt": self.wall_time(instance.registered_at),
            "version": 1,
            "registeredResources": _resources(instance.cpu, instance.memory_mib, instance.gpu_ids),
            "remainingResources": _resources(free.cpu, free.memory_mib, free.gpu_ids),
            "attributes": [{"name": name, "value": value} for name, value in instance.attributes.items()],
            "attachments": [],
            "tags": [],
        }

    def protection(self, cluster: str, task: EcsTask, now: float) -> dict[str, Any]:
        """Return a ProtectedTask."""
        answer: dict[str, Any] = {
            "taskArn": self.arn("task", cluster, task.identifier),
            "protectionEnabled": task.is_protected(now),
        }
        if task.protected_until is not None and task.is_protected(now):
            answer["expirationDate"] = self.wall_time(task.protected_until)
        return answer

    def _deployment(
        self, service: EcsService, deployment: EcsDeployment, tasks: list[EcsTask], desired: int
    ) -> dict[str, Any]:
        own = [task for task in tasks if task.deployment == deployment.identifier]
        at = self.wall_time(deployment.created_at)
        return {
            "id": deployment.identifier,
            "status": deployment.status,
            "taskDefinition": deployment.task_definition,
            "desiredCount": desired if deployment is service.primary else 0,
            **_counts(own),
            "failedTasks": deployment.failed_tasks,
            "createdAt": at,
            "updatedAt": at,
            "rolloutState": deployment.rollout_state,
            "rolloutStateReason": deployment.rollout_reason,
        }

    def _container(
        self, cluster: ClusterState, task: EcsTask, container: Mapping[str, Any]
    ) -> dict[str, Any]:
        name = container["name"]
        answer: dict[str, Any] = {
            "containerArn": self.arn("container", cluster.name, f"{task.identifier}/{name}"),
            "taskArn": self.arn("task", cluster.name, task.identifier),
            "name": name,
            "image": container["image"],
            "networkInterfaces": [],
            "networkBindings": [],
        }
        state = task.containers.get(name)
        answer["lastStatus"] = state.status if state else "PENDING"
        if state is not None:
            answer["healthStatus"] = str(state.health)
            if state.exit_code is not None:
                answer["exitCode"] = state.exit_code
        if any(need["type"] == "GPU" for need in container.get("resourceRequirements", ())):
            answer["gpuIds"] = list(task.gpu_ids)
        return answer

    def _attachments(self, task: EcsTask) -> list[dict[str, Any]]:
        if task.definition.get("networkMode") != "awsvpc" or not task.address:
            return []
        details = [{"name": "privateIPv4Address", "value": task.address}]
        return [
            {
                "id": task.identifier,
                "type": "ElasticNetworkInterface",
                "status": "ATTACHED",
                "details": details,
            }
        ]


def _counts(tasks: list[EcsTask]) -> dict[str, int]:
    live = [task for task in tasks if task.wanted is TaskStatus.RUNNING]
    return {
        "runningCount": sum(task.status is TaskStatus.RUNNING for task in live),
        "pendingCount": sum(task.status in STARTING for task in live),
    }


def _tags(tags: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"key": key, "value": value} for key, value in tags.items()]


def _resources(cpu: int, memory_mib: int, gpus: tuple[str, ...]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [
        {"name": "CPU", "type": "INTEGER", "integerValue": cpu},
        {"name": "MEMORY", "type": "INTEGER", "integerValue": memory_mib},
    ]
    if gpus:
        found.append({"name": "GPU", "type": "STRINGSET", "stringSetValue": list(gpus)})
    return found
