"""The calls of the ECS API about services, tasks and capacity providers.

Requests are checked against botocore's model. What is described elsewhere (clusters, task definitions)
stays with ministack.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import botocore.session
from botocore.validate import ParamValidator

from inference_local.emulator.ecs.api.capacity_providers import (
    FARGATE_PROVIDERS,
    CapacityProviders,
    demand_forced,
    demand_network,
)
from inference_local.emulator.ecs.api.ecs_shapes import EcsShapes
from inference_local.emulator.ecs.api.instance_calls import InstanceCalls
from inference_local.emulator.ecs.control.cluster_state import (
    EcsTask,
    HostPool,
    Shape,
    TaskStatus,
)
from inference_local.emulator.ecs.control.ecs_control import ClusterParts, EcsControl
from inference_local.emulator.ecs.control.task_life import ProtectionError, protect, unprotect
from inference_local.emulator.refusals import (
    EXECUTE_COMMAND_OFF,
    NOT_INTERACTIVE,
    SERVICE_NOT_ACTIVE,
    SERVICE_UNKNOWN,
    AwsApiError,
)

Answer = dict[str, Any]


@dataclass(frozen=True)
class ApiSources:
    """What the calls need from the emulator."""

    clock: Callable[[], float]
    """The control plane's clock."""
    definition: Callable[[str], Shape | None]
    """Returns a task definition by ARN, ``family`` or ``family:revision``; None if there is none."""
    has_cluster: Callable[[str], bool]
    """Whether a cluster exists."""
    pool: Callable[[Shape], HostPool]
    """Returns the host pool of a capacity provider's request."""
    has_load_balancer: bool = False
    """Whether services may have target groups."""


class EcsApi:
    """Answers calls by name, see `answer`.

    control: The control plane.
    shapes: Builds answers.
    sources: The emulator.
    """

    def __init__(self, control: EcsControl, shapes: EcsShapes, sources: ApiSources) -> None:
        self._control = control
        self._shapes = shapes
        self._sources = sources
        self._model = botocore.session.get_session().get_service_model("ecs")
        self._providers = CapacityProviders(self._used_providers)
        self.calls: Mapping[str, Callable[[Shape], Answer]] = {
            "CreateService": self._create_service,
            "UpdateService": self._update_service,
            "DeleteService": self._delete_service,
            "DescribeServices": self._describe_services,
            "ListServices": self._list_services,
            "RunTask": self._run_task,
            "StopTask": self._stop_task,
            "DescribeTasks": self._describe_tasks,
            "ListTasks": self._list_tasks,
            "ExecuteCommand": self._execute_command,
            **InstanceCalls(shapes, self._parts).calls,
            "UpdateTaskProtection": self._update_protection,
            "GetTaskProtection": self._get_protection,
            "CreateCapacityProvider": self._create_provider,
            "DescribeCapacityProviders": self._describe_providers,
            "DeleteCapacityProvider": self._delete_provider,
        }

    def answer(self, action: str, request: Shape) -> Answer:
        """Answer a call. Raises AwsApiError if the request is wrong."""
        shape = self._model.operation_model(action).input_shape
        report = ParamValidator().validate(request, shape)
        if report.has_errors():
            raise AwsApiError("InvalidParameterException", report.generate_report())
        with self._control.lock:
            return self.calls[action](request)

    def associate(self, cluster: str, providers: Sequence[str]) -> None:
        """Replace the capacity providers of a cluster (PutClusterCapacityProviders)."""
        with self._control.lock:
            self._providers.associate(cluster, providers)
            for name in set(providers) - FARGATE_PROVIDERS:
                self._control.add_pool(cluster, self._sources.pool(self._providers.known[name]))

    def tag(self, arn: str, tags: Sequence[Shape]) -> bool:
        """Tag a task or a service; return whether it is one."""
        kind, _, rest = arn.rpartition(":")[2].partition("/")
        cluster, _, identifier = rest.partition("/")
        state = self._control.cluster(cluster).state if identifier else None
        found = (
            (state.tasks if kind == "task" else state.services if kind == "service" else {}) if state else {}
        )
        if identifier not in found:
            return False
        found[identifier].tags.update({each["key"]: each.get("value", "") for each in tags})
        return True

    def _parts(self, request: Shape) -> ClusterParts:
        name = _tail(request.get("cluster") or "default")
        if not self._sources.has_cluster(name):
            raise AwsApiError("ClusterNotFoundException", "Cluster not found.")
        return self._control.cluster(name)

    def _definition(self, reference: str) -> Shape:
        found = self._sources.definition(reference)
        if found is None or found.get("status") == "INACTIVE":
            raise AwsApiError("ClientException", f"Unable to describe task definition {reference}.")
        self._control.around.definitions[found["taskDefinitionArn"]] = found
        return found

    def _create_service(self, request: Shape) -> Answer:
        parts = self._parts(request)
        name = request["serviceName"]
        if name in parts.state.services:
            raise AwsApiError("InvalidParameterException", "Creation of service was not idempotent.")
        if "taskDefinition" not in request:
            raise AwsApiError("InvalidParameterException", "Task definition can not be blank.")
        if request.get("loadBalancers") and not self._sources.has_load_balancer:
            raise AwsApiError(
                "InvalidParameterException",
                "loadBalancers: tasks that share one network have no load balancer; isolate the emulator",
            )
        self._check_strategy(parts, request)
        definition = self._definition(request["taskDefinition"])
        demand_network(request, definition)
        given = {
            **request,
            "desiredCount": request.get("desiredCount", 1),
            "taskDefinition": definition["taskDefinitionArn"],
        }
        self._control.create_service(parts.state.name, name, given, self._sources.clock())
        return {"service": self._service(parts, name)}

    def _update_service(self, request: Shape) -> Answer:
        parts = self._parts(request)
        name = self._active(parts, request["service"])
        self._check_strategy(parts, request)
        changes = {key: value for key, value in request.items() if key not in ("cluster", "service")}
        before = parts.state.services[name].request.get("capacityProviderStrategy") or ()
        demand_forced(
            before,
            changes.get("capacityProviderStrategy", before),
            forced=bool(changes.get("forceNewDeployment")),
        )
        self._providers.demand_single(changes.get("capacityProviderStrategy") or ())
        if "taskDefinition" in changes:
            definition = self._definition(changes["taskDefinition"])
            # What a request leaves out stays as it was.
            demand_network({**parts.state.services[name].request, **changes}, definition)
            changes["taskDefinition"] = definition["taskDefinitionArn"]
        self._control.update_service(parts.state.name, name, changes, self._sources.clock())
        return {"service": self._service(parts, name)}

    def _delete_service(self, request: Shape) -> Answer:
        parts = self._parts(request)
        name = self._active(parts, request["service"])
        if parts.state.services[name].desired and not request.get("force"):
            raise AwsApiError(
                "InvalidParameterException", "The service cannot be stopped while it is scaled above 0."
            )
        self._control.delete_service(parts.state.name, name)
        return {"service": self._service(parts, name)}

    def _describe_services(self, request: Shape) -> Answer:
        parts = self._parts(request)
        names = [_tail(each) for each in request["services"]]
        known = [name for name in names if name in parts.state.services]
        failures = [
            {"arn": self._shapes.arn("service", parts.state.name, name), "reason": "MISSING"}
            for name in names
            if name not in known
        ]
        return {"services": [self._service(parts, name) for name in known], "failures": failures}

    def _list_services(self, request: Shape) -> Answer:
        parts = self._parts(request)
        arns = [self._shapes.arn("service", parts.state.name, name) for name in parts.state.services]
        return {"serviceArns": arns}

    def _run_task(self, request: Shape) -> Answer:
        parts = self._parts(request)
        self._check_strategy(parts, request)
        definition = self._definition(request["taskDefinition"])
        tasks = [
            self._control.run_task(parts.state.name, definition, request, self._sources.clock())
            for _ in range(int(request.get("count") or 1))
        ]
        return {"tasks": [self._shapes.task(parts.state, task) for task in tasks], "failures": []}

    def _stop_task(self, request: Shape) -> Answer:
        parts = self._parts(request)
        task = self._task(parts, request["task"])
        self._control.stop_task(
            parts.state.name, task.identifier, request.get("reason", ""), self._sources.clock()
        )
        return {"task": self._shapes.task(parts.state, task)}

    def _describe_tasks(self, request: Shape) -> Answer:
        parts = self._parts(request)
        found, failures = [], []
        for each in request["tasks"]:
            task = parts.state.tasks.get(_tail(each))
            if task is None:
                arn = self._shapes.arn("task", parts.state.name, _tail(each))
                failures.append({"arn": arn, "reason": "MISSING"})
            else:
                found.append(self._shapes.task(parts.state, task))
        return {"tasks": found, "failures": failures}

    def _list_tasks(self, request: Shape) -> Answer:
        """List tasks, by default those that are wanted to run (API ListTasks, desiredStatus)."""
        parts = self._parts(request)
        wanted = request.get("desiredStatus") or "RUNNING"
        service = _tail(request["serviceName"]) if request.get("serviceName") else None
        instance = _tail(request["containerInstance"]) if request.get("containerInstance") else None
        arns = [
            self._shapes.arn("task", parts.state.name, task.identifier)
            for task in parts.state.tasks.values()
            if str(task.wanted) == wanted
            and service in (None, task.service)
            and instance in (None, task.instance)
            and request.get("family") in (None, task.definition["family"])
            and request.get("startedBy") in (None, task.started_by)
        ]
        return {"taskArns": arns}

    def _execute_command(self, request: Shape) -> Answer:
        """Open a session, which nothing reads: the plug-in of Session Manager speaks with AWS only."""
        parts = self._parts(request)
        task = self._task(parts, request["task"])
        if not request["interactive"]:
            raise NOT_INTERACTIVE.error()
        if not task.runs_commands or task.status is not TaskStatus.RUNNING:
            raise EXECUTE_COMMAND_OFF.error()
        names = [each["name"] for each in task.definition["containerDefinitions"]]
        name = request.get("container") or names[0]
        if name not in names or (len(names) > 1 and "container" not in request):
            raise AwsApiError("InvalidParameterException", f"the task has the containers {', '.join(names)}")
        identifier = f"ecs-execute-command-{task.identifier[:17]}"
        return {
            "clusterArn": self._shapes.arn("cluster", "", parts.state.name),
            "containerArn": self._shapes.arn("container", parts.state.name, f"{task.identifier}/{name}"),
            "containerName": name,
            "interactive": True,
            "session": {"sessionId": identifier, "streamUrl": "wss://none", "tokenValue": "none"},
            "taskArn": self._shapes.arn("task", parts.state.name, task.identifier),
        }

    def _update_protection(self, request: Shape) -> Answer:
        parts, now = self._parts(request), self._sources.clock()
        protected, failures = [], []
        for each in request["tasks"]:
            task = self._task(parts, each)
            try:
                if request["protectionEnabled"]:
                    protect(task, request.get("expiresInMinutes"), now)
                else:
                    unprotect(task)
            except ProtectionError as error:
                if str(error) != "TASK_NOT_VALID":
                    raise AwsApiError(str(error), "expiresInMinutes must be from 1 to 2880") from error
                failures.append(
                    {"arn": self._shapes.arn("task", parts.state.name, task.identifier), "reason": str(error)}
                )
            else:
                protected.append(self._shapes.protection(parts.state.name, task, now))
        return {"protectedTasks": protected, "failures": failures}

    def _get_protection(self, request: Shape) -> Answer:
        parts, now = self._parts(request), self._sources.clock()
        tasks = [self._task(parts, each) for each in request.get("tasks", ())]
        return {
            "protectedTasks": [self._shapes.protection(parts.state.name, task, now) for task in tasks],
            "failures": [],
        }

    def _create_provider(self, request: Shape) -> Answer:
        self._providers.create(request)
        if request.get("managedInstancesProvider"):
            self._control.add_pool(_tail(request["cluster"]), self._sources.pool(request))
        return {"capacityProvider": self._provider(request["name"])}

    def _describe_providers(self, request: Shape) -> Answer:
        names = [_tail(each) for each in request.get("capacityProviders", self._providers.known)]
        known = [name for name in names if name in self._providers.known]
        failures = [{"arn": name, "reason": "MISSING"} for name in names if name not in known]
        return {"capacityProviders": [self._provider(name) for name in known], "failures": failures}

    def _delete_provider(self, request: Shape) -> Answer:
        name = _tail(request["capacityProvider"])
        answer = self._provider(name) if name in self._providers.known else {}
        self._providers.delete(name)
        self._control.remove_pool(name)
        return {"capacityProvider": {**answer, "status": "INACTIVE"}}

    def _provider(self, name: str) -> Answer:
        kept = ("name", "cluster", "autoScalingGroupProvider", "managedInstancesProvider", "tags")
        known = self._providers.known[name]
        return {
            "capacityProviderArn": self._shapes.arn("capacity-provider", "", name),
            "status": "ACTIVE",
            **{key: known[key] for key in kept if key in known},
        }

    def _used_providers(self, cluster: str) -> set[str]:
        """Return the providers of services' strategies and of tasks that have not stopped."""
        state = self._control.cluster(cluster).state
        strategies = {
            each["capacityProvider"]
            for service in state.services.values()
            if service.status == "ACTIVE"
            for each in service.request.get("capacityProviderStrategy") or ()
        }
        running = {task.provider for task in state.tasks.values() if task.status is not TaskStatus.STOPPED}
        return strategies | running

    def _service(self, parts: ClusterParts, name: str) -> Answer:
        service = parts.state.services[name]
        return self._shapes.service(parts.state, service, parts.scheduler.desired(service))

    def _active(self, parts: ClusterParts, reference: str) -> str:
        name = _tail(reference)
        if name not in parts.state.services:
            raise SERVICE_UNKNOWN.error()
        if parts.state.services[name].status != "ACTIVE":
            raise SERVICE_NOT_ACTIVE.error()
        return name

    def _task(self, parts: ClusterParts, reference: str) -> EcsTask:
        task = parts.state.tasks.get(_tail(reference))
        if task is None:
            raise AwsApiError("InvalidParameterException", "The referenced task was not found.")
        return task

    def _check_strategy(self, parts: ClusterParts, request: Shape) -> None:
        self._providers.demand(parts.state.name, request.get("capacityProviderStrategy") or ())


def _tail(reference: str) -> str:
    return reference.rpartition("/")[2]
