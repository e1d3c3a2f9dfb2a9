"""A capacity provider whose hosts an Auto Scaling group starts."""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import aws_autoscaling as autoscaling
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_ecs as ecs
from constructs import Construct

from inference_constructs.ecs.host_launch_template import HostLaunchTemplate, HostProperties
from inference_constructs.findings import acknowledge

_Group = autoscaling.CfnAutoScalingGroup


class GroupCapacity(Construct):
    """An Auto Scaling group of a pool and its capacity provider.

    ECS starts hosts for tasks that wait, and stops hosts without tasks. Before a host stops, ECS drains it,
    so that its tasks end their streams (Amazon ECS Developer Guide, "Safely stop Amazon ECS workloads running
    on EC2 instances" and "Control the instances Amazon ECS terminates").

    Parameters
    ----------
    provider_name
        Name of the capacity provider, a plain string: services of other stacks use it.
    hosts
        The pool.
    template
        Launch template of its hosts.
    subnets
        Subnets of its hosts.
    spot
        Whether hosts are Spot instances.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        provider_name: str,
        hosts: HostProperties,
        template: HostLaunchTemplate,
        subnets: Sequence[ec2.ISubnet],
        spot: bool,
    ) -> None:
        super().__init__(scope, construct_id)
        version = _Group.LaunchTemplateSpecificationProperty(
            launch_template_id=template.ref, version=template.attr_latest_version_number
        )
        # A group with instance market options or a target for reserved capacity has one type and no policy.
        mixed = spot or len(hosts.instance_types) > 1
        group = _Group(
            self,
            "Group",
            capacity_rebalance=True if spot else None,
            health_check_grace_period=600,
            health_check_type="EC2",
            launch_template=None if mixed else version,
            max_size=str(hosts.max_hosts),
            min_size=str(hosts.min_hosts),
            mixed_instances_policy=_policy(hosts, version, spot=spot) if mixed else None,
            # Required by managed termination protection.
            new_instances_protected_from_scale_in=True,
            vpc_zone_identifier=[subnet.subnet_id for subnet in subnets],
        )
        self.provider = ecs.CfnCapacityProvider(
            self,
            "Provider",
            name=provider_name,
            auto_scaling_group_provider=ecs.CfnCapacityProvider.AutoScalingGroupProviderProperty(
                auto_scaling_group_arn=group.ref,
                managed_draining="ENABLED",
                managed_scaling=ecs.CfnCapacityProvider.ManagedScalingProperty(
                    # Time in which a host joins; until then it does not count as unused.
                    instance_warmup_period=300,
                    maximum_scaling_step_size=100,
                    minimum_scaling_step_size=1,
                    status="ENABLED",
                    target_capacity=100,
                ),
                managed_termination_protection="ENABLED",
            ),
        )
        if mixed:
            acknowledge(
                group,
                {"EC26": "The rule fails on groups with several types. The template encrypts its volume."},
            )
        acknowledge(
            group,
            {"AS3": "ECS starts and stops the hosts, and EventBridge reports each container instance."},
        )


def _policy(
    hosts: HostProperties,
    version: autoscaling.CfnAutoScalingGroup.LaunchTemplateSpecificationProperty,
    *,
    spot: bool,
) -> autoscaling.CfnAutoScalingGroup.MixedInstancesPolicyProperty:
    """Return the types of the hosts, in the order of the blueprint, and how they are bought."""
    return _Group.MixedInstancesPolicyProperty(
        instances_distribution=_Group.InstancesDistributionProperty(
            on_demand_allocation_strategy="prioritized",
            on_demand_base_capacity=0,
            on_demand_percentage_above_base_capacity=0 if spot else 100,
            spot_allocation_strategy="price-capacity-optimized" if spot else None,
        ),
        launch_template=_Group.LaunchTemplateProperty(
            launch_template_specification=version,
            overrides=[
                _Group.LaunchTemplateOverridesProperty(instance_type=each.name)
                for each in hosts.instance_types
            ],
        ),
    )
