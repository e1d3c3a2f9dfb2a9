"""Resource types that the stand-in of ECS makes: task definitions, services, capacity providers."""

from __future__ import annotations

import time
from typing import Final

from ministack.services import ecs
from ministack.services.cloudformation import stacks
from ministack.services.cloudformation.provisioners import _RESOURCE_HANDLERS

from inference_blueprints.local.emulator.ecs.ecs_emulation import EcsEmulation
from inference_blueprints.local.emulator.resource_handlers.api_parameters import api_parameters
from inference_blueprints.local.emulator.resource_handlers.registry import Made, ResourceRequest, register

#: CloudFormation waits for a steady service for hours; a run of this machine does not.
_STEADY_SECONDS: Final = 600.0
_POLL_SECONDS: Final = 0.2
_API: Final = "ecs"
_TASK_DEFINITION: Final = "AWS::ECS::TaskDefinition"
_SERVICE: Final = "AWS::ECS::Service"
_PROVIDER: Final = "AWS::ECS::CapacityProvider"
_ASSOCIATIONS: Final = "AWS::ECS::ClusterCapacityProviderAssociations"


def register_ecs(emulation: EcsEmulation) -> None:
    """Let the stand-in make the types, in place of ministack and of stubs."""
    for name in (_TASK_DEFINITION, _SERVICE, _PROVIDER, _ASSOCIATIONS):
        _RESOURCE_HANDLERS.pop(name, None)
    register(_TASK_DEFINITION, TaskDefinitionHandler())
    register(_SERVICE, EcsServiceHandler(emulation))
    register(_PROVIDER, CapacityProviderHandler(emulation))
    register(_ASSOCIATIONS, ProviderAssociationsHandler(emulation))
    plain = stacks._runs_on_worker_thread
    # A service waits for its tasks, which ask the emulator meanwhile.
    stacks._runs_on_worker_thread = lambda name: name == _SERVICE or plain(name)


class TaskDefinitionHandler:
    """Registers a revision for each content."""

    def create(self, request: ResourceRequest) -> Made:
        """Register a task definition and return its ARN."""
        given = dict(request.properties)
        given.setdefault("Family", f"{request.stack}-{request.logical_id}")
        status, _, body = ecs._register_task_definition(api_parameters(_API, "RegisterTaskDefinition", given))
        if status >= 400:  # noqa: PLR2004 - first status of errors
            raise ValueError(f"{_TASK_DEFINITION}: {body.decode()}")
        family = given["Family"]
        arn = ecs._task_defs[f"{family}:{ecs._task_def_latest[family]}"]["taskDefinitionArn"]
        return arn, {"TaskDefinitionArn": arn}

    update = create

    def delete(self, request: ResourceRequest) -> None:
        """Deregister the revision."""
        ecs._deregister_task_definition({"taskDefinition": request.physical_id})


class EcsServiceHandler:
    """Creates services, and waits until they are steady."""

    def __init__(self, emulation: EcsEmulation) -> None:
        self._emulation = emulation

    def create(self, request: ResourceRequest) -> Made:
        """Create a service; it fails with the service's events if its deployment does."""
        given = dict(request.properties)
        given.setdefault("ServiceName", f"{request.stack}-{request.logical_id}")
        parameters = api_parameters(_API, "CreateService", given)
        arn = self._emulation.call("CreateService", parameters)["service"]["serviceArn"]
        self._wait(parameters.get("cluster", "default"), parameters["serviceName"])
        return arn, self._attributes(arn)

    def update(self, request: ResourceRequest) -> Made:
        """Change a service."""
        name = request.physical_id.rpartition("/")[2]
        parameters = {**api_parameters(_API, "UpdateService", request.properties), "service": name}
        self._emulation.call("UpdateService", parameters)
        self._wait(parameters.get("cluster", "default"), name)
        return request.physical_id, self._attributes(request.physical_id)

    def delete(self, request: ResourceRequest) -> None:
        """Delete a service, and wait until its tasks have ended."""
        _, cluster, name = request.physical_id.rsplit("/", 2)
        self._emulation.call("DeleteService", {"cluster": cluster, "service": name, "force": True})
        deadline = time.monotonic() + _STEADY_SECONDS
        while self._emulation.call("DescribeServices", {"cluster": cluster, "services": [name]})["services"]:
            if time.monotonic() > deadline:
                raise ValueError(f"{_SERVICE}: tasks of {name} did not end within {_STEADY_SECONDS:.0f} s")
            time.sleep(_POLL_SECONDS)

    def _wait(self, cluster: str, name: str) -> None:
        """Wait for a completed deployment.

        Raises
        ------
        ValueError
            If it fails, is rolled back, or is not complete in time, with the newest events.
        """
        described = {"cluster": cluster, "services": [name]}
        [service] = self._emulation.call("DescribeServices", described)["services"]
        identifier = service["deployments"][0]["id"]
        deadline = time.monotonic() + _STEADY_SECONDS
        while True:
            [service] = self._emulation.call("DescribeServices", described)["services"]
            primary = service["deployments"][0] if service["deployments"] else {}
            mine = {each["id"]: each["rolloutState"] for each in service["deployments"]}.get(identifier)
            if mine == "COMPLETED" and primary["id"] == identifier:
                return
            if mine in (None, "FAILED") or time.monotonic() > deadline:
                said = "; ".join(event["message"] for event in service["events"][:5])
                raise ValueError(f"{_SERVICE}: {name} did not become steady: {said}")
            time.sleep(_POLL_SECONDS)

    def _attributes(self, arn: str) -> dict[str, str]:
        return {"ServiceArn": arn, "Name": arn.rpartition("/")[2]}


class CapacityProviderHandler:
    """Creates capacity providers."""

    def __init__(self, emulation: EcsEmulation) -> None:
        self._emulation = emulation

    def create(self, request: ResourceRequest) -> Made:
        """Create a capacity provider and return its name."""
        given = dict(request.properties)
        given.setdefault("Name", f"{request.stack}-{request.logical_id}")
        self._emulation.call("CreateCapacityProvider", api_parameters(_API, "CreateCapacityProvider", given))
        return str(given["Name"]), {}

    def update(self, request: ResourceRequest) -> Made:
        """Keep it: settings of a capacity provider do not change here."""
        return request.physical_id, {}

    def delete(self, request: ResourceRequest) -> None:
        """Delete it."""
        self._emulation.call("DeleteCapacityProvider", {"capacityProvider": request.physical_id})


class ProviderAssociationsHandler:
    """Associates capacity providers with a cluster."""

    def __init__(self, emulation: EcsEmulation) -> None:
        self._emulation = emulation

    def create(self, request: ResourceRequest) -> Made:
        """Associate them."""
        parameters = api_parameters(_API, "PutClusterCapacityProviders", request.properties)
        cluster = parameters["cluster"].rpartition("/")[2]
        self._emulation.api.associate(cluster, parameters.get("capacityProviders", ()))
        ecs._put_cluster_capacity_providers(parameters)
        return cluster, {}

    update = create

    def delete(self, request: ResourceRequest) -> None:
        """Leave them: the cluster goes too."""
