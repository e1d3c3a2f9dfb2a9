"""Resource types that the stand-in of ECS makes: task definitions, services, capacity providers."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from ministack.services import ecs
from ministack.services.cloudformation import stacks
from ministack.services.cloudformation.provisioners import _RESOURCE_HANDLERS

from inference_local.emulator.ecs.api.capacity_providers import (
    CapacityProviders,
    demand_forced,
    demand_network,
)
from inference_local.emulator.ecs.control.cluster_state import Shape
from inference_local.emulator.ecs.ecs_emulation import EcsEmulation
from inference_local.emulator.resource_handlers.registry import (
    Made,
    ResourceRequest,
    api_parameters,
    register,
)

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
    register(
        _PROVIDER,
        CapacityProviderHandler(
            partial(emulation.call, "CreateCapacityProvider"),
            partial(emulation.call, "DeleteCapacityProvider"),
        ),
    )
    register(_ASSOCIATIONS, ProviderAssociationsHandler(emulation.api.associate))
    plain = stacks._runs_on_worker_thread
    # A service waits for its tasks, which ask the emulator meanwhile.
    stacks._runs_on_worker_thread = lambda name: name == _SERVICE or plain(name)


def register_recorded_ecs() -> None:
    """Let capacity providers be recorded, and services without tasks be ministack's, with AWS's refusals."""
    providers = CapacityProviders(_recorded_uses)
    register(_PROVIDER, CapacityProviderHandler(providers.create, _by_name(providers)))
    register(_ASSOCIATIONS, ProviderAssociationsHandler(providers.associate))
    plain = _RESOURCE_HANDLERS.pop(_SERVICE)
    register(_SERVICE, RecordedServiceHandler(providers, plain))


def _by_name(providers: CapacityProviders) -> Callable[[Shape], Shape]:
    return lambda request: providers.delete(request["capacityProvider"])


def _recorded_uses(cluster: str) -> set[str]:
    """Return the providers of the strategies of a cluster's services."""
    return {
        each["capacityProvider"]
        for key, service in ecs._services.items()
        if key.startswith(f"{cluster}/") and service["status"] == "ACTIVE"
        for each in service.get("capacityProviderStrategy") or ()
    }


class RecordedServiceHandler:
    """Hands services to ministack, which runs no task, after the checks of their capacity providers.

    plain: ministack's functions.
    """

    def __init__(self, providers: CapacityProviders, plain: Mapping[str, Any]) -> None:
        self._providers = providers
        self._plain = plain

    def create(self, request: ResourceRequest) -> Made:
        """Record a service."""
        given = api_parameters(_API, "CreateService", request.properties)
        self._providers.demand(_cluster_of(given), given.get("capacityProviderStrategy", ()))
        made: Made = self._plain["create"](request.logical_id, request.properties, request.stack)
        return made

    def update(self, request: ResourceRequest) -> Made:
        """Change it."""
        before, after = (
            api_parameters(_API, "UpdateService", each).get("capacityProviderStrategy", ())
            for each in (request.previous, request.properties)
        )
        cluster = _cluster_of(api_parameters(_API, "UpdateService", request.properties))
        self._providers.demand(cluster, after)
        self._providers.demand_single(after)
        demand_forced(before, after, forced=_is_forced(request))
        # A network configuration that the template leaves out stays.
        demand_network(
            {"networkConfiguration": request.previous.get("NetworkConfiguration")},
            ecs._task_defs[ecs._resolve_td_key(request.properties["TaskDefinition"])],
        )
        made: Made = self._plain["update"](
            request.physical_id, request.previous, request.properties, request.stack
        )
        if after:
            _move_tasks(cluster, made[1]["Name"], after[0]["capacityProvider"])
        return made

    def delete(self, request: ResourceRequest) -> None:
        """Forget it."""
        self._plain["delete"](request.physical_id, request.properties)


def _move_tasks(cluster: str, service: str, provider: str) -> None:
    """Let the tasks of a service be on its provider: ministack's stay where they were."""
    for task in ecs._tasks.values():
        if task.get("group") == f"service:{service}" and task["clusterArn"].endswith(f"/{cluster}"):
            task["capacityProviderName"] = provider


def _cluster_of(parameters: Shape) -> str:
    return str(parameters.get("cluster", "default")).rpartition("/")[2]


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
        parameters = {
            **api_parameters(_API, "UpdateService", request.properties),
            "service": name,
            "forceNewDeployment": _is_forced(request),
        }
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

        Raises ValueError if it fails, is rolled back, or is not complete in time, with the newest events.
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


def _is_forced(request: ResourceRequest) -> bool:
    """Whether an update of a service forces a new deployment: its nonce is new.

    AWS CDK, ForceNewDeployment: "If nonce is not provided or its value stays the same across deployments, no
    new deployment is forced."
    """
    before, after = (each.get("ForceNewDeployment") or {} for each in (request.previous, request.properties))
    switch = str(after.get("EnableForceNewDeployment")).lower() == "true"
    return switch and before.get("ForceNewDeploymentNonce") != after.get("ForceNewDeploymentNonce")


class CapacityProviderHandler:
    """Creates capacity providers.

    create, delete: Answer CreateCapacityProvider and DeleteCapacityProvider.
    """

    def __init__(self, create: Callable[[Shape], object], delete: Callable[[Shape], object]) -> None:
        self._create = create
        self._delete = delete

    def create(self, request: ResourceRequest) -> Made:
        """Create a capacity provider and return its name."""
        given = dict(request.properties)
        given.setdefault("Name", f"{request.stack}-{request.logical_id}")
        parameters = api_parameters(_API, "CreateCapacityProvider", given)
        if "ClusterName" in given:
            parameters["cluster"] = given["ClusterName"]
        self._create(parameters)
        return str(given["Name"]), {}

    def update(self, request: ResourceRequest) -> Made:
        """Keep it: settings of a capacity provider do not change here."""
        return request.physical_id, {}

    def delete(self, request: ResourceRequest) -> None:
        """Delete it."""
        self._delete({"capacityProvider": request.physical_id})


class ProviderAssociationsHandler:
    """Associates capacity providers with a cluster.

    associate: Replaces the capacity providers of a cluster.
    """

    def __init__(self, associate: Callable[[str, Sequence[str]], None]) -> None:
        self._associate = associate

    def create(self, request: ResourceRequest) -> Made:
        """Associate them."""
        parameters = api_parameters(_API, "PutClusterCapacityProviders", request.properties)
        cluster = parameters["cluster"].rpartition("/")[2]
        self._associate(cluster, parameters.get("capacityProviders", ()))
        ecs._put_cluster_capacity_providers(parameters)
        return cluster, {}

    update = create

    def delete(self, request: ResourceRequest) -> None:
        """Associate none."""
        self._associate(request.physical_id, ())
