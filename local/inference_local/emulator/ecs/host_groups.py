"""The hosts that a capacity provider launches: from its Auto Scaling group, or from its Managed Instances.

Sources: API AutoScalingGroupProvider and InstanceLaunchTemplate (allowedInstanceTypes take exact names and
wildcards); what a host registers is its type's row in the catalogue. Real hosts keep some memory for their
system; these do not.
"""

from __future__ import annotations

import base64
import binascii
import fnmatch
import re
from collections.abc import Iterator
from typing import Any

from ministack.services import autoscaling, ec2

from inference_catalog import instance_type, instance_types
from inference_catalog.ecs_hosts import host_kind
from inference_local.emulator.ecs.control.cluster_state import EcsInstance, HostPool, Shape
from inference_local.emulator.ecs.control.host_scaling import HostSize
from inference_local.emulator.refusals import AwsApiError

_CPU_UNITS = 1024


def host_size(name: str) -> HostSize:
    """Return what an instance of a type registers."""
    known = instance_type(name)
    # ECS registers GPUs, and no Neuron devices (Amazon ECS Developer Guide, "Amazon ECS task definitions for
    # AWS Neuron machine learning workloads").
    gpus = known.device_count if host_kind(known) == "gpu" else 0
    return HostSize(known.vcpu * _CPU_UNITS, known.memory_mib, gpus)


def record_host(instance: EcsInstance) -> None:
    """Let EC2 describe a host (API Instance)."""
    ec2._instances[instance.ec2_id] = {
        "InstanceId": instance.ec2_id,
        "ImageId": "ami-00000000000000000",
        "InstanceType": instance.instance_type,
        "State": {"Code": 16, "Name": "running"},
        "SubnetId": "",
        "VpcId": "",
        "PrivateIpAddress": instance.address,
        "PublicIpAddress": "",
        "PrivateDnsName": "",
        "PublicDnsName": "",
        "SecurityGroups": [],
        "Architecture": "x86_64",
        "RootDeviceType": "ebs",
        "RootDeviceName": "/dev/xvda",
        "Hypervisor": "xen",
        "Virtualization": "hvm",
        "Placement": {"AvailabilityZone": instance.zone, "Tenancy": "default"},
        "Monitoring": {"State": "disabled"},
        "AmiLaunchIndex": 0,
        "LaunchTime": ec2._now_ts(),
        "BlockDeviceMappings": [],
        "IamInstanceProfile": None,
    }


def forget_host(ec2_id: str) -> None:
    """Let EC2 know a host no more."""
    ec2._instances.pop(ec2_id, None)


def pool_of(request: Shape, region: str) -> HostPool:
    """Return the pool of a capacity provider.

    Raises AwsApiError if it names no group, or no instance type of the catalogue.
    """
    zones = (f"{region}a", f"{region}b")
    if managed := request.get("managedInstancesProvider"):
        wanted = (
            managed["instanceLaunchTemplate"].get("instanceRequirements", {}).get("allowedInstanceTypes", ())
        )
        return HostPool(request["name"], request, _known_types(request["name"], wanted), zones)
    if "autoScalingGroupProvider" not in request:
        raise AwsApiError(
            "InvalidParameterException", f"capacity provider {request['name']} names no capacity"
        )
    reference = request["autoScalingGroupProvider"]["autoScalingGroupArn"]
    group = autoscaling._asgs.get(reference.rpartition("autoScalingGroupName/")[2] or reference)
    if group is None:
        raise AwsApiError("InvalidParameterException", f"the Auto Scaling group {reference} does not exist")
    group["Instances"] = []  # those of ministack have no host; `ecs_emulation` adds the others
    data = _template_data(group)
    overrides = (group.get("MixedInstancesPolicy") or {}).get("LaunchTemplate", {}).get("Overrides", ())
    types = [each["InstanceType"] for each in overrides if "InstanceType" in each] or [
        data.get("InstanceType", "")
    ]
    return HostPool(
        request["name"],
        request,
        _known_types(request["name"], types),
        tuple(group.get("AvailabilityZones") or zones),
        minimum=int(group["MinSize"]),
        maximum=int(group["MaxSize"]),
        wanted=int(group["DesiredCapacity"]),
        attributes=dict(_attributes(data.get("UserData", ""))),
        # API LaunchTemplateInstanceNetworkInterfaceSpecificationRequest: "efa" and "efa-only".
        efa_interfaces=sum(
            str(each.get("InterfaceType", "")).startswith("efa") for each in data.get("NetworkInterfaces", ())
        ),
    )


def _known_types(provider: str, wanted: Any) -> tuple[str, ...]:
    every = instance_types()
    found = [name for pattern in wanted for name in every if fnmatch.fnmatchcase(name, pattern)]
    if not found:
        names = ", ".join(wanted) or "none"
        raise AwsApiError(
            "InvalidParameterException",
            f"capacity provider {provider} asks for instance types that the catalogue does not have: {names}",
        )
    return tuple(found)


def _template_data(group: Shape) -> Shape:
    template = group.get("LaunchTemplate") or {}
    if (
        mixed := (group.get("MixedInstancesPolicy") or {})
        .get("LaunchTemplate", {})
        .get("LaunchTemplateSpecification")
    ):
        template = mixed
    identifier, name = template.get("LaunchTemplateId"), template.get("LaunchTemplateName")
    for known in ec2._launch_templates.values():
        if identifier in (known["LaunchTemplateId"], known["LaunchTemplateName"]) or (
            name and name == known["LaunchTemplateName"]
        ):
            data: Shape = known["Versions"][-1]["LaunchTemplateData"]
            return data
    return {}


def _attributes(user_data: str) -> Iterator[tuple[str, str]]:
    """Read ECS_INSTANCE_ATTRIBUTES of the agent's configuration (ecs-agent-config.html) from user data."""
    try:
        text = base64.b64decode(user_data, validate=True).decode()
    except (binascii.Error, ValueError):
        text = user_data
    if found := re.search(r"ECS_INSTANCE_ATTRIBUTES=['\"]?(\{[^}]*\})", text):
        yield from re.findall(r'"([^"]+)"\s*:\s*"([^"]*)"', found[1].replace("\\", ""))
