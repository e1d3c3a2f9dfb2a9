"""Scalable targets and policies of templates, which the stand-in of Application Auto Scaling keeps."""

from __future__ import annotations

from typing import Any, Final

from ministack.services.cloudformation.provisioners import _RESOURCE_HANDLERS

from inference_local.emulator.ecs.scaling.scaling_emulation import ScalingEmulation
from inference_local.emulator.resource_handlers.registry import (
    Made,
    ResourceRequest,
    api_parameters,
    register,
)

_TARGET: Final = "AWS::ApplicationAutoScaling::ScalableTarget"
_POLICY: Final = "AWS::ApplicationAutoScaling::ScalingPolicy"
_SERVICE: Final = "application-autoscaling"
_NAMES: Final = ("ResourceId", "ScalableDimension", "ServiceNamespace")


def register_scaling(scaling: ScalingEmulation) -> None:
    """Let the stand-in keep the types, in place of stubs."""
    for name in (_TARGET, _POLICY):
        _RESOURCE_HANDLERS.pop(name, None)
    register(_TARGET, ScalableTargetHandler(scaling))
    register(_POLICY, ScalingPolicyHandler(scaling))


class ScalableTargetHandler:
    """Registers scalable targets with their scheduled actions."""

    def __init__(self, scaling: ScalingEmulation) -> None:
        self._scaling = scaling

    def create(self, request: ResourceRequest) -> Made:
        """Register a target; its id joins resource, dimension and namespace."""
        given = request.properties
        parameters = api_parameters(_SERVICE, "RegisterScalableTarget", given)
        self._scaling.call("RegisterScalableTarget", parameters)
        place = {name: given[name] for name in _NAMES}
        self._forget_actions(place)
        for action in given.get("ScheduledActions") or ():
            self._scaling.call(
                "PutScheduledAction", api_parameters(_SERVICE, "PutScheduledAction", {**place, **action})
            )
        identifier = "|".join(given[name] for name in _NAMES)
        return identifier, {"Id": identifier}

    update = create

    def delete(self, request: ResourceRequest) -> None:
        """Deregister it."""
        self._scaling.call("DeregisterScalableTarget", _place(request.physical_id))

    def _forget_actions(self, place: dict[str, Any]) -> None:
        for each in self._scaling.call("DescribeScheduledActions", place)["ScheduledActions"]:
            self._scaling.call(
                "DeleteScheduledAction", {**place, "ScheduledActionName": each["ScheduledActionName"]}
            )


class ScalingPolicyHandler:
    """Puts scaling policies."""

    def __init__(self, scaling: ScalingEmulation) -> None:
        self._scaling = scaling

    def create(self, request: ResourceRequest) -> Made:
        """Put a policy and return its ARN."""
        given = dict(request.properties)
        if identifier := given.pop("ScalingTargetId", None):
            given.update(_place(identifier))
        parameters = api_parameters(_SERVICE, "PutScalingPolicy", given)
        arn = self._scaling.call("PutScalingPolicy", parameters)["PolicyARN"]
        return arn, {"Arn": arn}

    update = create

    def delete(self, request: ResourceRequest) -> None:
        """Delete it, unless its target took it along."""
        for each in self._scaling.call("DescribeScalingPolicies", {"ServiceNamespace": "ecs"})[
            "ScalingPolicies"
        ]:
            if each["PolicyARN"] == request.physical_id:
                place = {name: each[name] for name in (*_NAMES, "PolicyName")}
                self._scaling.call("DeleteScalingPolicy", place)


def _place(identifier: str) -> dict[str, str]:
    """Return the names of a target from its id in CloudFormation."""
    return dict(zip(_NAMES, identifier.split("|"), strict=True))
