"""Puts the control plane and the agent into ministack's ECS."""

from __future__ import annotations

import contextvars
import json
import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final
from xml.sax.saxutils import escape

from ministack.core.responses import error_response_json, get_account_id, get_region, json_response, new_uuid
from ministack.services import autoscaling, cloudwatch_logs, ec2, ecs, eventbridge

from inference_local.emulator.ecs.agent.container_command import StandInImages
from inference_local.emulator.ecs.agent.task_agent import AgentSettings, SecretError, TaskAgent
from inference_local.emulator.ecs.api.ecs_api import ApiSources, EcsApi
from inference_local.emulator.ecs.api.ecs_shapes import EcsShapes
from inference_local.emulator.ecs.control.cluster_state import (
    ClusterState,
    EcsInstance,
    HostPool,
    LaunchAttempt,
    Shape,
)
from inference_local.emulator.ecs.control.dependencies import Dependencies
from inference_local.emulator.ecs.control.ecs_control import EcsControl
from inference_local.emulator.ecs.host_groups import forget_host, host_size, pool_of, record_host
from inference_local.emulator.ecs.network.task_networks import (
    VPC_PREFIX,
    OwnNetworks,
    SharedNetwork,
    TaskNetworks,
)
from inference_local.emulator.ecs.vpc import Vpc
from inference_local.emulator.refusals import AwsApiError
from inference_local.processes.child_processes import ProcessGroup

# The hosts of Auto Scaling groups, as Amazon EC2 Auto Scaling describes and terminates them.
#
# Sources: ec2-auto-scaling-lifecycle.html (states), API TerminateInstanceInAutoScalingGroup,
# managed-instance-draining.html (a lifecycle hook holds an instance in ``Terminating:Wait`` until its last
# task has ended). The desired capacity stays when an instance is terminated in its group; managed scaling
# lowers it when it removes one.

_IN_SERVICE: Final = "InService"
_DRAINING: Final = "Terminating:Wait"


def group_of_pool(pool: HostPool) -> dict[str, Any] | None:
    """Return the Auto Scaling group of a pool. None of Managed Instances."""
    reference = pool.request.get("autoScalingGroupProvider", {}).get("autoScalingGroupArn", "")
    found: dict[str, Any] | None = autoscaling._asgs.get(
        reference.rpartition("autoScalingGroupName/")[2] or reference
    )
    return found


def join_group(instance: EcsInstance, pool: HostPool) -> None:
    """Let the group of a pool describe a host, once."""
    group = group_of_pool(pool)
    if group is None or any(each["InstanceId"] == instance.ec2_id for each in group["Instances"]):
        return
    group["Instances"].append(
        {
            "InstanceId": instance.ec2_id,
            "LifecycleState": _IN_SERVICE,
            "HealthStatus": "Healthy",
            "AvailabilityZone": instance.zone,
            "ProtectedFromScaleIn": group["NewInstancesProtectedFromScaleIn"],
            "LaunchTemplate": group.get("LaunchTemplate") or {},
            "LaunchConfigurationName": "",
        }
    )
    group["DesiredCapacity"] = max(group["DesiredCapacity"], _in_service(group))


def leave_group(ec2_id: str) -> None:
    """Let a group forget a host."""
    for group in autoscaling._asgs.values():
        for each in list(group["Instances"]):
            if each["InstanceId"] == ec2_id:
                group["Instances"].remove(each)
                if each["LifecycleState"] == _IN_SERVICE:
                    group["DesiredCapacity"] = max(group["MinSize"], group["DesiredCapacity"] - 1)


def register_termination(terminate: Callable[[str], None]) -> None:
    """Answer TerminateInstanceInAutoScalingGroup, which ministack does not have.

    terminate: Ends a host by the identifier of its EC2 instance.
    """

    def answer(parameters: dict[str, str]) -> Any:
        instance = parameters.get("InstanceId", "")
        members = [each for group in autoscaling._asgs.values() for each in group["Instances"]]
        found = next((each for each in members if each["InstanceId"] == instance), None)
        if found is None:
            return autoscaling._error(
                "ValidationError", f"Instance Id not found - No managed instance found for: {instance}"
            )
        if parameters.get("ShouldDecrementDesiredCapacity") != "false":
            return autoscaling._error(
                "ValidationError", "the stand-in keeps the desired capacity: ShouldDecrementDesiredCapacity"
            )
        found["LifecycleState"] = _DRAINING
        terminate(instance)
        return autoscaling._xml(
            200,
            "TerminateInstanceInAutoScalingGroupResponse",
            "<TerminateInstanceInAutoScalingGroupResult><Activity><StatusCode>InProgress</StatusCode>"
            "</Activity></TerminateInstanceInAutoScalingGroupResult>",
        )

    autoscaling._ACTION_MAP["TerminateInstanceInAutoScalingGroup"] = answer


def register_reboots(reboot: Callable[[str], None]) -> None:
    """Let RebootInstances boot hosts. ministack answers it, and refuses instances that it does not know.

    reboot: Boots a host by the identifier of its EC2 instance.
    """

    def answer(parameters: dict[str, str]) -> Any:
        given = ec2._reboot_instances(parameters)
        if given[0] == HTTPStatus.OK:
            for instance in ec2._parse_member_list(parameters, "InstanceId"):
                reboot(instance)
        return given

    ec2._ACTION_MAP["RebootInstances"] = answer


def register_activities(pools: Callable[[], list[HostPool]], wall_time: Callable[[float], float]) -> None:
    """Answer DescribeScalingActivities with the attempts to start hosts: ministack lists none.

    pools: Returns the pools of all clusters.
    wall_time: Returns the time of a moment of the control plane's clock.
    """

    def answer(parameters: dict[str, str]) -> Any:
        name = parameters.get("AutoScalingGroupName", "")
        if name and name not in autoscaling._asgs:
            # botocore's model of the call has no error for an unknown group: the list is empty.
            return plain(parameters)
        members = [
            _activity(group["AutoScalingGroupName"], attempt, wall_time(attempt.at))
            for pool in pools()
            if (group := group_of_pool(pool)) and name in ("", group["AutoScalingGroupName"])
            for attempt in pool.launches
        ]
        most = int(parameters.get("MaxRecords") or len(members))
        return autoscaling._xml(
            200,
            "DescribeScalingActivitiesResponse",
            f"<DescribeScalingActivitiesResult><Activities>{''.join(members[:most])}</Activities>"
            "</DescribeScalingActivitiesResult>",
        )

    plain = autoscaling._ACTION_MAP["DescribeScalingActivities"]
    autoscaling._ACTION_MAP["DescribeScalingActivities"] = answer


def _activity(group: str, attempt: LaunchAttempt, at: float) -> str:
    """Return an activity. The words are those of kubernetes/autoscaler#1263."""
    moment = datetime.fromtimestamp(at, UTC).isoformat()
    what = attempt.ec2_id or f" Status Reason: {attempt.refusal}"
    fields = {
        "ActivityId": new_uuid(),
        "AutoScalingGroupName": group,
        "Cause": "an instance was started in response to a difference between desired and actual capacity",
        "Description": f"Launching a new EC2 instance{':' if attempt.ec2_id else '. '} {what}",
        "EndTime": moment,
        "Progress": "100",
        "StartTime": moment,
        "StatusCode": "Failed" if attempt.refusal else "Successful",
        "StatusMessage": attempt.refusal,
    }
    inner = "".join(f"<{key}>{escape(value)}</{key}>" for key, value in fields.items() if value)
    return f"<member>{inner}</member>"


def _in_service(group: dict[str, Any]) -> int:
    return sum(each["LifecycleState"] == _IN_SERVICE for each in group["Instances"])


_LOGGER = logging.getLogger("ecs-stand-in")
_TICK_SECONDS = 0.1


class EcsEmulation:
    """The stand-in in the emulator's process. Use it as a context manager.

    directory: Folder for tasks and logs.
    images: What stands for images.
    speed: How much faster than time the control plane's clock is: waits, grace periods, launches, intervals
        of health checks. What processes need stays real: time-outs of checks and stopTimeout.
    environment: Variables of every container.
    vpc: Networks, names and load balancer of tasks. None if tasks share the network of this process.
    """

    def __init__(
        self,
        directory: Path,
        images: StandInImages,
        speed: float,
        environment: Mapping[str, str],
        vpc: Vpc | None = None,
    ) -> None:
        self._began = time.time()
        self._speed = speed
        self._ends = threading.Event()
        region, account = get_region(), get_account_id()
        shapes = EcsShapes(region, account, self._wall_time)
        self._context = contextvars.copy_context()
        self._told: list[tuple[str, Mapping[str, Any]]] = []
        self.agent = TaskAgent(
            AgentSettings(
                directory,
                images,
                environment,
                self._secret,
                shapes.arn,
                self._clock,
                self._wall_time,
                speed,
                _own_networks(directory / "logs" / "networks.log") if vpc else lambda _: SharedNetwork(),
                self._send_log,
            )
        )
        around = Dependencies(
            self.agent, host_size, tell=lambda kind, detail: self._told.append((kind, detail))
        )
        self._balancer = vpc.load_balancer(self._context, speed) if vpc else None
        if vpc and self._balancer:
            around.targets, around.names = self._balancer, vpc.cloud_map(self._context, self._balancer)
            around.address_prefix = VPC_PREFIX
        self.control = EcsControl(around)
        self.agent.control = self.control
        self._shapes = shapes
        self.api = EcsApi(
            self.control,
            shapes,
            ApiSources(
                self._clock,
                lambda reference: ecs._task_defs.get(ecs._resolve_td_key(reference)),
                lambda name: name in ecs._clusters,
                lambda request: pool_of(request, region),
                has_load_balancer=self._balancer is not None,
            ),
        )
        self._thread = threading.Thread(
            target=self._context.run, args=(self._run,), name="ecs-control", daemon=True
        )

    def __enter__(self) -> EcsEmulation:
        for action in self.api.calls:
            ecs._ACTION_MAP[action] = self._handler(action)
        plain_put, plain_tag = ecs._ACTION_MAP["PutClusterCapacityProviders"], ecs._ACTION_MAP["TagResource"]

        def put_providers(data: Shape) -> Any:
            self.api.associate(data["cluster"].rpartition("/")[2], data["capacityProviders"])
            return plain_put(data)

        def tag(data: Shape) -> Any:
            return json_response({}) if self.api.tag(data["resourceArn"], data["tags"]) else plain_tag(data)

        ecs._ACTION_MAP["PutClusterCapacityProviders"] = self._checked(put_providers)
        ecs._ACTION_MAP["TagResource"] = tag
        for name, fault in self._faults().items():
            ecs._ACTION_MAP[name] = partial(_faulted, fault)
        register_termination(self._terminate)
        register_reboots(self._reboot)
        register_activities(self.control.pools, self._wall_time)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        self._thread.join()
        self.agent.close()
        if self._balancer:
            self._balancer.close()

    def call(self, action: str, request: Shape) -> dict[str, Any]:
        """Answer a call of CloudFormation. Raises AwsApiError if the request is wrong."""
        return self.api.answer(action, request)

    def _faults(self) -> dict[str, Callable[[Shape], dict[str, Any] | None]]:
        """Return the calls that AWS does not have: faults, and what tests look at."""
        control, now = self.control, self._clock
        return {
            "StandInKillTask": lambda data: self._kill_task(data["task"]),
            "StandInProcesses": lambda data: {"processes": self.agent.pids(data["task"])},
            "StandInCutHost": lambda data: self.agent.cut_host(data["instance"]),
            "StandInLoseGpu": lambda data: self.agent.lose_gpu(data["instance"]),
            "StandInKillHost": lambda data: control.kill_host(data["cluster"], data["instance"], now()),
            "StandInDisconnectAgent": lambda data: control.disconnect_agent(
                data["cluster"], data["instance"]
            ),
            "StandInReconnectAgent": lambda data: control.reconnect_agent(data["cluster"], data["instance"]),
            "StandInBlockLaunches": lambda data: control.block_launches(
                data["cluster"], data["pool"], blocked=data["blocked"], refusal=data.get("refusal", "")
            ),
            "StandInHoldReboots": lambda data: control.hold_reboots(data["cluster"], held=data["held"]),
        }

    def _kill_task(self, task: str) -> None:
        for process in self.agent.pids(task).values():
            os.kill(process, signal.SIGKILL)

    def _handler(self, action: str) -> Callable[[Shape], Any]:
        return self._checked(lambda data: json_response(self.api.answer(action, data)))

    def _checked(self, call: Callable[[Shape], Any]) -> Callable[[Shape], Any]:
        def answer(data: Shape) -> Any:
            try:
                return call(data)
            except AwsApiError as error:
                return error_response_json(error.code, str(error), 400)

        return answer

    def _run(self) -> None:
        """Move the control plane on, and send its events, until the end."""
        while not self._ends.wait(_TICK_SECONDS):
            try:
                self.control.tick(self._clock())
                told, self._told[:] = list(self._told), []
                for kind, detail in told:
                    self._send(kind, detail)
            except Exception:
                _LOGGER.exception("the control plane of ECS could not take a step")

    def _send(self, kind: str, detail: Mapping[str, Any]) -> None:
        """Send an event to the default bus (ecs_cwe_events.html)."""
        state = self.control.cluster(detail["cluster"]).state
        content: dict[str, Any] = {**detail, "clusterArn": self._shapes.arn("cluster", "", state.name)}
        if kind == "ECS Container Instance State Change":
            self._tell_ec2(state, detail["containerInstance"], detail["ec2InstanceId"])
        if kind == "ECS Task State Change":
            if detail["task"] not in state.tasks:
                return
            with self.control.lock:
                content = self._shapes.task(state, state.tasks[detail["task"]])
            for name in ("createdAt", "startedAt", "stoppingAt", "stoppedAt"):
                if name in content:
                    content[name] = datetime.fromtimestamp(content[name], UTC).isoformat()
        event = {
            "EventId": new_uuid(),
            "Source": "aws.ecs",
            "DetailType": kind,
            "Detail": json.dumps(content),
            "EventBusName": "default",
            "Time": int(time.time()),
            "Resources": [],
            "Account": get_account_id(),
            "Region": get_region(),
        }
        eventbridge._ensure_default_bus()
        eventbridge._events_log_list().append(event)
        eventbridge._dispatch_event(event, eventbridge._pattern_event_view(event))

    def _tell_ec2(self, state: ClusterState, identifier: str, ec2_id: str) -> None:
        if (instance := state.instances.get(identifier)) is None:
            forget_host(ec2_id)
            leave_group(ec2_id)
        else:
            record_host(instance)
            join_group(instance, state.pools[instance.provider])

    def _terminate(self, ec2_id: str) -> None:
        self.control.terminate_host(ec2_id, self._clock())

    def _reboot(self, ec2_id: str) -> None:
        self.control.reboot_host(ec2_id, self._clock())

    def _clock(self) -> float:
        return (time.time() - self._began) * self._speed

    def _wall_time(self, seconds: float) -> float:
        return self._began + seconds / self._speed

    def _send_log(self, group: str, stream: str, lines: list[str]) -> None:
        self._context.copy().run(_put_lines, group, stream, lines)

    def _secret(self, value_from: str) -> str:
        """Return the value of a secret or a parameter, see `SecretError`."""
        container = {"secrets": [{"name": "value", "valueFrom": value_from}]}
        try:
            found: Mapping[str, str] = self._context.copy().run(ecs._resolve_container_secrets, container)
        except ecs._SecretResolutionError as error:
            raise SecretError(str(error)) from error
        return found["value"]


def _put_lines(group: str, stream: str, lines: list[str]) -> None:
    """Put lines into a stream, which is created at first. Those of an unknown group are lost."""
    place = {"logGroupName": group, "logStreamName": stream}
    if group in cloudwatch_logs._log_groups:
        if stream not in cloudwatch_logs._log_groups[group]["streams"]:
            cloudwatch_logs._create_log_stream(place)
        now = int(time.time() * 1000)
        events = [{"timestamp": now, "message": line} for line in lines]
        cloudwatch_logs._put_log_events({**place, "logEvents": events})
    else:
        _LOGGER.warning("no log group %s: %d lines of %s are lost", group, len(lines), stream)


def _own_networks(log_path: Path) -> Callable[[ProcessGroup], TaskNetworks]:
    return lambda processes: OwnNetworks(processes, log_path)


def _faulted(fault: Callable[[Shape], dict[str, Any] | None], data: Shape) -> Any:
    return json_response(fault(data) or {})
