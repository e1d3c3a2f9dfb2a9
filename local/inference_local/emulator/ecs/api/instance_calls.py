"""The calls of the ECS API about container instances: what they are, their state and their attributes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from inference_local.emulator.ecs.api.ecs_shapes import EcsShapes
from inference_local.emulator.ecs.control.cluster_state import EcsInstance, Shape
from inference_local.emulator.ecs.control.ecs_control import ClusterParts
from inference_local.emulator.ecs.control.task_placement import member_of
from inference_local.emulator.refusals import AwsApiError

Answer = dict[str, Any]
_TARGET_TYPE: Final = "container-instance"


class InstanceCalls:
    """Answers calls by name.

    shapes: Builds answers.
    parts: Returns the cluster of a request, or raises an error.
    """

    def __init__(self, shapes: EcsShapes, parts: Callable[[Shape], ClusterParts]) -> None:
        self._shapes = shapes
        self._parts = parts
        self.calls: Mapping[str, Callable[[Shape], Answer]] = {
            "ListContainerInstances": self._list,
            "DescribeContainerInstances": self._describe,
            "UpdateContainerInstancesState": self._update,
            "PutAttributes": self._put_attributes,
            "DeleteAttributes": self._delete_attributes,
        }

    def _list(self, request: Shape) -> Answer:
        parts = self._parts(request)
        # Of the cluster query language, what this library asks.
        query = str(request.get("filter") or "")
        subject, _, value = query.partition(" == ")
        if subject not in ("", "ec2InstanceId") and not subject.startswith("attribute:"):
            raise AwsApiError("InvalidParameterException", f"The filter {subject} is not known here.")
        return {
            "containerInstanceArns": [
                self._shapes.arn("container-instance", parts.state.name, each.identifier)
                for each in parts.state.instances.values()
                if request.get("status") in (None, each.status)
                and (
                    member_of(each, query) if subject.startswith("attribute:") else value in ("", each.ec2_id)
                )
            ]
        }

    def _describe(self, request: Shape) -> Answer:
        parts = self._parts(request)
        found, failures = _instances(parts, request)
        return {
            "containerInstances": [self._shapes.instance(parts.state, each) for each in found],
            "failures": failures,
        }

    def _update(self, request: Shape) -> Answer:
        parts = self._parts(request)
        if request["status"] not in ("ACTIVE", "DRAINING"):
            raise AwsApiError(
                "InvalidParameterException", "Container instance status should be ACTIVE or DRAINING."
            )
        found, failures = _instances(parts, request)
        for each in found:
            parts.hosts.set_status(each, request["status"])
        return {
            "containerInstances": [self._shapes.instance(parts.state, each) for each in found],
            "failures": failures,
        }

    def _put_attributes(self, request: Shape) -> Answer:
        """Set attributes of hosts; those of another name stay (API PutAttributes)."""
        parts = self._parts(request)
        for each in request["attributes"]:
            instance = _target(parts, each)
            instance.own_attributes = {**instance.own_attributes, each["name"]: each.get("value", "")}
        return {"attributes": list(request["attributes"])}

    def _delete_attributes(self, request: Shape) -> Answer:
        """Remove attributes of hosts (API DeleteAttributes)."""
        parts = self._parts(request)
        for each in request["attributes"]:
            instance = _target(parts, each)
            instance.own_attributes = {
                name: value for name, value in instance.own_attributes.items() if name != each["name"]
            }
        return {"attributes": list(request["attributes"])}


def _instances(parts: ClusterParts, request: Shape) -> tuple[list[EcsInstance], list[Answer]]:
    found, failures = [], []
    for each in request["containerInstances"]:
        instance = parts.state.instances.get(_tail(each))
        if instance is None:
            failures.append({"arn": each, "reason": "MISSING"})
        else:
            found.append(instance)
    return found, failures


def _target(parts: ClusterParts, attribute: Shape) -> EcsInstance:
    """Return the host of an attribute: its ARN, or its identifier with the type of the target."""
    identifier = attribute.get("targetId", "")
    instance = parts.state.instances.get(_tail(identifier))
    is_typed = identifier.startswith("arn:") or attribute.get("targetType") == _TARGET_TYPE
    if instance is None or not is_typed:
        raise AwsApiError("TargetNotFoundException", f"the container instance {identifier} was not found")
    return instance


def _tail(reference: str) -> str:
    return reference.rpartition("/")[2]
