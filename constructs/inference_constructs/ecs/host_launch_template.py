"""The launch template of the hosts of a pool.

The L2 construct of aws-cdk-lib knows neither network interfaces nor a target for reserved capacity.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from aws_cdk import CfnTag
from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from inference_catalog import InstanceType
from inference_catalog.ecs_hosts import EcsHostImage, EcsHostKind, host_kind
from inference_catalog.node_facts import (
    FREE_GP3_OPERATIONS,
    OPERATIONS_PER_MIB_PER_SECOND,
    efa_layout,
    image_volume_mib_per_second,
)
from inference_constructs.capacity.reserved_instances import ReservedInstances

# Properties of the hosts of a pool as plain values.


@dataclass(frozen=True)
class HostProperties:
    """The hosts of one pool."""

    pool: str
    """Name of the pool, and value of the attribute by which tasks find its hosts."""
    instance_types: Sequence[InstanceType]
    """Instance types of one architecture, all with the same accelerator."""
    disk_gib: int
    """Space for images and weights on EBS, in GiB."""
    min_hosts: int
    """Number of hosts that always run."""
    max_hosts: int
    """Maximum number of hosts."""
    efa: bool = False
    """Whether hosts start with all their EFA interfaces."""
    availability_zone: str | None = None
    """Name of the only zone of its hosts; None for any zone."""
    reserved: ReservedInstances | None = None
    """Reserved capacity, outside which no host starts."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """The user's labels, which become attributes of the hosts."""
    images: Sequence[str] = ()
    """Images that hosts pull before they take tasks."""

    @property
    def kind(self) -> EcsHostKind:
        """Which image they boot. All types have the same accelerator, or none, and the same architecture."""
        return host_kind(self.instance_types[0])

    @property
    def uses_instance_store(self) -> bool:
        """Whether images and weights are on local NVMe, which all types then have."""
        return all(each.local_nvme_gb for each in self.instance_types)


_ROOT_DEVICE = "/dev/xvda"
_Template = ec2.CfnLaunchTemplate


class HostLaunchTemplate(ec2.CfnLaunchTemplate):
    """A launch template with an encrypted volume, IMDSv2, and all EFA interfaces if the pool has EFA.

    Parameters
    ----------
    hosts
        The pool.
    image
        Image that hosts boot.
    user_data
        Script of the first start, without references.
    instance_profile_arn
        Instance profile of the hosts.
    security_group_ids
        Security groups of every interface.
    tags
        Tags of instances and volumes.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        hosts: HostProperties,
        image: EcsHostImage,
        user_data: str,
        instance_profile_arn: str,
        security_group_ids: Sequence[str],
        tags: Mapping[str, str],
    ) -> None:
        marks = [CfnTag(key=key, value=value) for key, value in {**tags, "Name": hosts.pool}.items()]
        super().__init__(
            scope,
            construct_id,
            launch_template_data=_Template.LaunchTemplateDataProperty(
                block_device_mappings=[_volume(hosts, image)],
                capacity_reservation_specification=_reservation(hosts),
                iam_instance_profile=_Template.IamInstanceProfileProperty(arn=instance_profile_arn),
                # EC2 reads the parameter at each start (Amazon EC2 User Guide, "Use a Systems Manager
                # parameter instead of an AMI ID"). It names one release.
                image_id=f"resolve:ssm:{image.parameter(hosts.kind)}",
                instance_market_options=_Template.InstanceMarketOptionsProperty(market_type="capacity-block")
                if hosts.reserved and hosts.reserved.kind == "capacity-block"
                else None,
                instance_type=hosts.instance_types[0].name,
                metadata_options=_Template.MetadataOptionsProperty(
                    http_endpoint="enabled", http_put_response_hop_limit=1, http_tokens="required"
                ),
                network_interfaces=_interfaces(hosts, security_group_ids) if hosts.efa else None,
                security_group_ids=None if hosts.efa else list(security_group_ids),
                tag_specifications=[
                    _Template.TagSpecificationProperty(resource_type=kind, tags=marks)
                    for kind in ("instance", "volume")
                ],
                user_data=base64.b64encode(user_data.encode()).decode(),
            ),
        )


def _volume(hosts: HostProperties, image: EcsHostImage) -> ec2.CfnLaunchTemplate.BlockDeviceMappingProperty:
    """Return the only volume. It is fast if it holds images and weights."""
    throughput = image_volume_mib_per_second(hosts.instance_types, from_snapshot=False)
    return _Template.BlockDeviceMappingProperty(
        device_name=_ROOT_DEVICE,
        ebs=_Template.EbsProperty(
            delete_on_termination=True,
            encrypted=True,
            iops=max(FREE_GP3_OPERATIONS, throughput * OPERATIONS_PER_MIB_PER_SECOND) if throughput else None,
            throughput=throughput,
            volume_size=image.root_volume_gib + hosts.disk_gib,
            volume_type="gp3",
        ),
    )


def _interfaces(
    hosts: HostProperties, security_group_ids: Sequence[str]
) -> list[ec2.CfnLaunchTemplate.NetworkInterfaceProperty]:
    """Return the interfaces that give a host its full EFA bandwidth with one private address."""
    return [
        _Template.NetworkInterfaceProperty(
            associate_public_ip_address=False if interface.kind == "interface" else None,
            delete_on_termination=True,
            device_index=interface.device,
            groups=list(security_group_ids),
            interface_type=interface.kind,
            network_card_index=interface.network_card,
        )
        for interface in efa_layout(hosts.instance_types[0])
    ]


def _reservation(
    hosts: HostProperties,
) -> ec2.CfnLaunchTemplate.CapacityReservationSpecificationProperty | None:
    """Return the reserved capacity outside which no host starts.

    Raises ValueError if the pool selects reservations by tags. A launch template names one reservation, or a
    resource group with a fixed list of members (Amazon EC2 API Reference, CapacityReservationTarget).
    """
    if hosts.reserved is None:
        return None
    if "id" not in hosts.reserved.selector:
        raise ValueError(
            f"pool {hosts.pool!r} selects reserved capacity by tags, and a launch template cannot"
        )
    return _Template.CapacityReservationSpecificationProperty(
        capacity_reservation_preference="capacity-reservations-only",
        capacity_reservation_target=_Template.CapacityReservationTargetProperty(
            capacity_reservation_id=hosts.reserved.selector["id"]
        ),
    )
