"""A capacity provider whose hosts Amazon ECS starts and keeps: ECS Managed Instances.

The L2 construct of aws-cdk-lib has no properties for local storage, for the time until a host is stopped, or
for the repair of broken hosts.
"""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import aws_ecs as ecs
from aws_cdk import aws_iam as iam
from constructs import Construct

from inference_constructs.ecs.host_launch_template import HostProperties
from inference_constructs.findings import acknowledge_managed_policies, managed_policy

#: Longest time for which ECS keeps a host without tasks, in seconds (Amazon ECS API Reference,
#: InfrastructureOptimization). A shorter one would move tasks to fewer hosts more often, and each move loads
#: a model again.
_IDLE_SECONDS = 3600
#: A limit on the price, in percent over the cheapest type, that is none (Amazon EC2 API Reference,
#: InstanceRequirementsRequest).
_ANY_PRICE = 999_999
_Provider = ecs.CfnCapacityProvider


class ManagedHostRoles(Construct):
    """The role with which ECS starts hosts, and the role of these hosts.

    AWS maintains both policies with the service. The first allows ECS to pass only roles whose names begin
    with ``ecsInstanceRole``, so this one may also pass the role of the hosts (Amazon ECS Developer
    Guide, "Amazon ECS Managed Instances instance profile").
    """

    def __init__(self, scope: Construct, construct_id: str) -> None:
        super().__init__(scope, construct_id)
        hosts = iam.Role(
            self,
            "Hosts",
            assumed_by=iam.ServicePrincipal("ec2.amazonaws.com"),
            managed_policies=[_managed("AmazonECSInstanceRolePolicyForManagedInstances")],
        )
        self.infrastructure = iam.Role(
            self,
            "Infrastructure",
            assumed_by=iam.ServicePrincipal("ecs.amazonaws.com"),
            inline_policies={
                "PassRole": iam.PolicyDocument(
                    statements=[
                        iam.PolicyStatement(
                            actions=["iam:PassRole"],
                            conditions={"StringEquals": {"iam:PassedToService": "ec2.amazonaws.com"}},
                            resources=[hosts.role_arn],
                        )
                    ]
                )
            },
            managed_policies=[_managed("AmazonECSInfrastructureRolePolicyForManagedInstances")],
        )
        self.profile = iam.CfnInstanceProfile(self, "Profile", roles=[hosts.role_name])
        acknowledge_managed_policies(
            self,
            [
                managed_policy("AmazonECSInstanceRolePolicyForManagedInstances"),
                managed_policy("AmazonECSInfrastructureRolePolicyForManagedInstances"),
            ],
            "AWS maintains these policies with what ECS needs to run hosts.",
        )


class ManagedCapacity(Construct):
    """A capacity provider of Managed Instances for one pool.

    ECS chooses the number of hosts, patches them and replaces those that are broken.

    Parameters
    ----------
    provider_name
        Name of the capacity provider, a plain string: services of other stacks use it.
    cluster_name
        Cluster of the provider.
    hosts
        The pool.
    roles
        Roles of ECS and of the hosts.
    subnet_ids, security_group_ids
        Subnets and security groups of the hosts.
    spot
        Whether hosts are Spot instances.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        provider_name: str,
        cluster_name: str,
        hosts: HostProperties,
        roles: ManagedHostRoles,
        subnet_ids: Sequence[str],
        security_group_ids: Sequence[str],
        spot: bool,
    ) -> None:
        super().__init__(scope, construct_id)
        provider = _Provider(
            self,
            "Provider",
            name=provider_name,
            cluster_name=cluster_name,
            managed_instances_provider=_Provider.ManagedInstancesProviderProperty(
                auto_repair_configuration=_Provider.AutoRepairConfigurationProperty(actions_status="ENABLED"),
                infrastructure_optimization=_Provider.InfrastructureOptimizationProperty(
                    scale_in_after=_IDLE_SECONDS
                ),
                infrastructure_role_arn=roles.infrastructure.role_arn,
                instance_launch_template=_Provider.InstanceLaunchTemplateProperty(
                    capacity_option_type="SPOT" if spot else "ON_DEMAND",
                    ec2_instance_profile_arn=roles.profile.attr_arn,
                    # Keys of tags may have a space or a slash, and those in metadata may not: EC2 would start
                    # no host (API reference, InstanceLaunchTemplate).
                    instance_metadata_tags_propagation=False,
                    instance_requirements=_requirements(hosts, spot=spot),
                    local_storage_configuration=_Provider.ManagedInstancesLocalStorageConfigurationProperty(
                        use_local_storage=True
                    )
                    if hosts.uses_instance_store
                    else None,
                    monitoring="BASIC",
                    network_configuration=_Provider.ManagedInstancesNetworkConfigurationProperty(
                        security_groups=list(security_group_ids), subnets=list(subnet_ids)
                    ),
                    storage_configuration=None
                    if hosts.uses_instance_store
                    else _Provider.ManagedInstancesStorageConfigurationProperty(
                        storage_size_gib=hosts.disk_gib
                    ),
                ),
                propagate_tags="CAPACITY_PROVIDER",
            ),
        )
        provider.node.add_dependency(roles)


def _requirements(
    hosts: HostProperties, *, spot: bool
) -> ecs.CfnCapacityProvider.InstanceRequirementsRequestProperty:
    """Return the pool's types. The two minimums are required by the API; the smallest type meets them.

    Without a limit of one's own, EC2 leaves out types that cost over 20 percent more than the cheapest on
    demand, or over 100 percent more as Spot (Amazon EC2 API Reference, InstanceRequirementsRequest).
    """
    limit = _ANY_PRICE if len(hosts.instance_types) > 1 else None
    return _Provider.InstanceRequirementsRequestProperty(
        allowed_instance_types=[each.name for each in hosts.instance_types],
        memory_mib=_Provider.MemoryMiBRequestProperty(
            min=min(each.memory_mib for each in hosts.instance_types)
        ),
        on_demand_max_price_percentage_over_lowest_price=None if spot else limit,
        spot_max_price_percentage_over_lowest_price=limit if spot else None,
        v_cpu_count=_Provider.VCpuCountRangeRequestProperty(
            min=min(each.vcpu for each in hosts.instance_types)
        ),
    )


def _managed(name: str) -> iam.IManagedPolicy:
    return iam.ManagedPolicy.from_aws_managed_policy_name(name)
