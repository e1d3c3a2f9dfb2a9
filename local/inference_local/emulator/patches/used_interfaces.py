"""Keeps network interfaces that are attached, and their security groups. ministack deletes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from ministack.services import ec2

from inference_local.emulator.refusals import GROUP_USED, INTERFACE_USED, AwsApiError

_PLAIN: Final[Mapping[str, Callable[[Any], Any]]] = {
    name: ec2._ACTION_MAP[name] for name in ("DeleteSecurityGroup", "DeleteNetworkInterface")
}


def _delete_group(parameters: Any) -> Any:
    group = ec2._p(parameters, "GroupId")
    groups = (each["GroupId"] for one in ec2._network_interfaces.values() for each in one["Groups"])
    if group in groups:
        return _refused(GROUP_USED.error(group=group))
    return _PLAIN["DeleteSecurityGroup"](parameters)


def _delete_interface(parameters: Any) -> Any:
    interface = ec2._p(parameters, "NetworkInterfaceId")
    known = ec2._network_interfaces.get(interface)
    if known and known["Attachment"]:
        return _refused(INTERFACE_USED.error(interface=interface))
    return _PLAIN["DeleteNetworkInterface"](parameters)


def _refused(error: AwsApiError) -> Any:
    return ec2._error(error.code, str(error), 400)


def apply() -> None:
    """Apply the patch."""
    ec2._ACTION_MAP |= {"DeleteSecurityGroup": _delete_group, "DeleteNetworkInterface": _delete_interface}
