"""Protects hosts of Auto Scaling groups from scale-in, as Amazon EC2 Auto Scaling does.

ministack lacks SetInstanceProtection, ignores NewInstancesProtectedFromScaleIn of UpdateAutoScalingGroup,
launches no host for the group of a template, and deletes a group whose hosts are protected.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ministack.services import autoscaling
from ministack.services.cloudformation.provisioners import _RESOURCE_HANDLERS

from inference_local.emulator.refusals import (
    GROUP_PROTECTED,
    GROUP_UNKNOWN,
    INSTANCE_NOT_IN_GROUP,
    INSTANCE_NOT_IN_SERVICE,
    INSTANCES_AT_ONCE,
    Refusal,
)

_TYPE: Final = "AWS::AutoScaling::AutoScalingGroup"
_MAXIMUM_INSTANCES: Final = 50
_STATES: Final = ("InService", "EnteringStandby", "Standby")
_PLAIN = dict(_RESOURCE_HANDLERS[_TYPE])
_update_plain = autoscaling._ACTION_MAP["UpdateAutoScalingGroup"]


def apply() -> None:
    """Apply the patch."""
    autoscaling._ACTION_MAP |= {
        "SetInstanceProtection": set_protection,
        "UpdateAutoScalingGroup": _update_group,
    }
    _RESOURCE_HANDLERS[_TYPE] |= {"create": _create, "delete": _delete}


def set_protection(parameters: Mapping[str, str]) -> Any:
    """Answer SetInstanceProtection. One host that cannot be changed fails the call for all.

    parameters: Those of a request of the query protocol.
    """
    name = parameters.get("AutoScalingGroupName", "")
    group = autoscaling._asgs.get(name)
    if group is None:
        return _refused(GROUP_UNKNOWN, group=name)
    wanted = autoscaling._parse_member_list(parameters, "InstanceIds")
    if len(wanted) > _MAXIMUM_INSTANCES:
        return _refused(INSTANCES_AT_ONCE, count=str(len(wanted)))
    members = {each["InstanceId"]: each for each in group["Instances"]}
    for instance in wanted:
        if instance not in members:
            return _refused(INSTANCE_NOT_IN_GROUP, instance=instance, group=name)
        if members[instance]["LifecycleState"] not in _STATES:
            return _refused(INSTANCE_NOT_IN_SERVICE, instance=instance)
    for instance in wanted:
        members[instance]["ProtectedFromScaleIn"] = parameters.get("ProtectedFromScaleIn") == "true"
    return autoscaling._xml(200, "SetInstanceProtectionResponse", "<SetInstanceProtectionResult/>")


def _refused(refusal: Refusal, **values: str) -> Any:
    error = refusal.error(**values)
    return autoscaling._error(error.code, str(error))


def _update_group(parameters: Mapping[str, str]) -> Any:
    """Change a group, also whether its new hosts are protected."""
    group = autoscaling._asgs.get(parameters.get("AutoScalingGroupName", ""))
    protected = parameters.get("NewInstancesProtectedFromScaleIn")
    if group is not None and protected:
        group["NewInstancesProtectedFromScaleIn"] = protected == "true"
    return _update_plain(parameters)


def _create(logical_id: str, properties: Mapping[str, Any], stack: str) -> Any:
    """Make a group with its hosts."""
    made = _PLAIN["create"](logical_id, properties, stack)
    group = autoscaling._asgs[made[0]]
    protected = str(group["NewInstancesProtectedFromScaleIn"]).lower() == "true"
    group["NewInstancesProtectedFromScaleIn"] = protected
    autoscaling._reconcile_instances(group)
    return made


def _delete(name: str, properties: Mapping[str, Any]) -> None:
    """Delete a group whose hosts may end. CloudFormation sets it to no host first."""
    group = autoscaling._asgs.get(name)
    if group and any(each["ProtectedFromScaleIn"] for each in group["Instances"]):
        raise GROUP_PROTECTED.error()
    _PLAIN["delete"](name, properties)
