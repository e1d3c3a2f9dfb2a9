"""A task definition from a request of RegisterTaskDefinition."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aws_cdk import aws_ecs as ecs
from constructs import Construct

from inference_constructs.findings import acknowledge

#: Property by field of the request.
_FIELDS = {
    "containerDefinitions": "container_definitions",
    "cpu": "cpu",
    "executionRoleArn": "execution_role_arn",
    "ephemeralStorage": "ephemeral_storage",
    "family": "family",
    "memory": "memory",
    "networkMode": "network_mode",
    "placementConstraints": "placement_constraints",
    "requiresCompatibilities": "requires_compatibilities",
    "runtimePlatform": "runtime_platform",
    "taskRoleArn": "task_role_arn",
    "volumes": "volumes",
}
#: Fields of one object, which jsii takes only as its class.
_STRUCTURES = frozenset({"ephemeralStorage", "runtimePlatform"})


def task_definition(scope: Construct, task: Mapping[str, Any]) -> ecs.CfnTaskDefinition:
    """Add the task definition. CloudFormation has the fields of the request, so its lists are passed on.

    Parameters
    ----------
    task
        A request of RegisterTaskDefinition, with references as values.

    Raises
    ------
    ValueError
        If the request has a field that is not passed on.
    """
    unknown = task.keys() - _FIELDS.keys()
    if unknown:
        raise ValueError(f"no property of the task definition for {', '.join(sorted(unknown))}")
    platform, storage = task.get("runtimePlatform"), task.get("ephemeralStorage")
    definition = ecs.CfnTaskDefinition(
        scope,
        "Task",
        runtime_platform=ecs.CfnTaskDefinition.RuntimePlatformProperty(
            cpu_architecture=platform["cpuArchitecture"],
            operating_system_family=platform["operatingSystemFamily"],
        )
        if platform
        else None,
        ephemeral_storage=ecs.CfnTaskDefinition.EphemeralStorageProperty(size_in_gib=storage["sizeInGiB"])
        if storage
        else None,
        **{_FIELDS[name]: value for name, value in task.items() if name not in _STRUCTURES},
    )
    acknowledge(definition, {"ECS2": "The variables contain names and addresses, but no secrets."})
    return definition
