"""The hosts for models: a capacity provider for each pool."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_ecs as ecs
from aws_cdk import aws_iam as iam
from constructs import Construct

from inference_blueprints.serving.types import ServingPlan
from inference_blueprints.spec.types import Pool
from inference_catalog.ecs_hosts import EcsHostImage
from inference_constructs.capacity import EfaSecurityGroup
from inference_constructs.ecs import (
    GroupCapacity,
    HostLaunchTemplate,
    HostProperties,
    HostRole,
    ManagedCapacity,
    ManagedHostRoles,
    host_user_data,
)
from inference_contracts.ecs_names import (
    NEURON_LOCKS_FOLDER,
    POOL_ATTRIBUTE,
    SHARED_FOLDER,
    capacity_provider,
)
from stacks.shared_parts import reserved_instances


class EcsCapacityStack(cdk.Stack):
    """A capacity provider for each pool of the blueprint, and Fargate for what needs no accelerator.

    cluster_name: Name of the cluster, a plain string.
    pools: Section of the blueprint.
    managed_pools: Names of the pools that Managed Instances run. Auto Scaling groups run the others.
    plan: The serving plan: hosts pull the images of their pool before they join.
    image: Image of the hosts of Auto Scaling groups.
    vpc: VPC of the hosts.
    members: Security group of hosts and tasks.
    instance_tags: Tags of instances and volumes.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster_name: str,
        pools: Sequence[Pool],
        managed_pools: frozenset[str],
        plan: ServingPlan,
        image: EcsHostImage,
        vpc: ec2.IVpc,
        members: ec2.ISecurityGroup,
        instance_tags: Mapping[str, str],
        env: cdk.Environment,
    ) -> None:
        super().__init__(scope, construct_id, env=env)
        self._cluster_name = cluster_name
        self._image = image
        self._vpc, self._members = vpc, members
        self._tags = instance_tags
        hosts = [_host_properties(pool, plan) for pool in pools]
        groups = [pool for pool in pools if pool.name not in managed_pools]
        providers: list[ecs.CfnCapacityProvider] = []
        if len(groups) < len(pools):
            roles = ManagedHostRoles(self, "ManagedHosts")
            # Tasks have addresses of their own there, so nobody has to reach the hosts.
            unreached = ec2.SecurityGroup(
                self, "ManagedHostsGroup", vpc=vpc, allow_all_outbound=True, description="Managed Instances"
            )
            for pool, each in zip(pools, hosts, strict=True):
                if pool.name in managed_pools:
                    self._add_managed(pool, each, roles, unreached)
        if groups:
            profile = iam.CfnInstanceProfile(
                self, "Profile", roles=[HostRole(self, "Hosts", cluster_name=cluster_name).role_name]
            )
            efa = (
                [EfaSecurityGroup(self, "Efa", vpc_id=vpc.vpc_id).attr_group_id]
                if any(pool.efa for pool in groups)
                else []
            )
            for pool, each in zip(pools, hosts, strict=True):
                if pool.name not in managed_pools:
                    providers += self._add_group(pool, each, profile, efa if pool.efa else [])
        # A provider of Managed Instances belongs to its cluster from its creation, and ECS refuses it here
        # (hashicorp/terraform-provider-aws#44783, aws/aws-cdk#35699). A list without it leaves it as it is.
        associations = ecs.CfnClusterCapacityProviderAssociations(
            self,
            "Providers",
            capacity_providers=["FARGATE", "FARGATE_SPOT", *(str(each.name) for each in providers)],
            cluster=cluster_name,
            default_capacity_provider_strategy=[],
        )
        if providers:
            associations.node.add_dependency(*providers)

    def _add_managed(
        self, pool: Pool, hosts: HostProperties, roles: ManagedHostRoles, group: ec2.SecurityGroup
    ) -> None:
        """Add the providers of Managed Instances of a pool."""
        for spot in _spot_or_not(pool):
            ManagedCapacity(
                self,
                f"Managed-{pool.name}{'-spot' if spot else ''}",
                provider_name=capacity_provider(self._cluster_name, pool.name, managed=True, spot=spot),
                cluster_name=self._cluster_name,
                hosts=hosts,
                roles=roles,
                subnet_ids=[subnet.subnet_id for subnet in self._subnets(pool)],
                security_group_ids=[group.security_group_id],
                spot=spot,
            )

    def _add_group(
        self, pool: Pool, hosts: HostProperties, profile: iam.CfnInstanceProfile, efa_groups: Sequence[str]
    ) -> list[ecs.CfnCapacityProvider]:
        """Add the launch template of a pool, and a provider for each way to buy its hosts."""
        template = HostLaunchTemplate(
            self,
            f"Hosts-{pool.name}",
            hosts=hosts,
            image=self._image,
            user_data=host_user_data(
                cluster_name=self._cluster_name,
                attributes={**hosts.labels, POOL_ATTRIBUTE: pool.name},
                shared_folders=[SHARED_FOLDER, *([NEURON_LOCKS_FOLDER] if hosts.kind == "neuron" else [])],
                images=hosts.images,
                instance_store=hosts.uses_instance_store,
                gpus=hosts.kind == "gpu",
                efa_devices=hosts.instance_types[0].efa_interfaces if hosts.efa else 0,
            ),
            instance_profile_arn=profile.attr_arn,
            security_group_ids=[self._members.security_group_id, *efa_groups],
            tags=self._tags,
        )
        return [
            GroupCapacity(
                self,
                f"Pool-{pool.name}{'-spot' if spot else ''}",
                provider_name=capacity_provider(self._cluster_name, pool.name, spot=spot),
                hosts=hosts,
                template=template,
                subnets=self._subnets(pool),
                spot=spot,
            ).provider
            for spot in _spot_or_not(pool)
        ]

    def _subnets(self, pool: Pool) -> list[ec2.ISubnet]:
        """Return the subnets of a pool. A platform has one private subnet per zone."""
        subnets = self._vpc.private_subnets
        if pool.availability_zone is None:
            return subnets
        return [subnet for subnet in subnets if subnet.availability_zone == pool.availability_zone]


def _spot_or_not(pool: Pool) -> Iterator[bool]:
    """Yield whether hosts are Spot instances, for each capacity provider of a pool."""
    if pool.purchase.spot:
        yield True
    if not pool.purchase.spot or pool.purchase.spot.on_demand_fallback:
        yield False


def _host_properties(pool: Pool, plan: ServingPlan) -> HostProperties:
    """Convert a pool of the blueprint."""
    images = {
        process.image
        for model in plan.models
        for deployment in model.deployments
        for process in deployment.workers
        if process.pool == pool.name
    }
    return HostProperties(
        pool=pool.name,
        instance_types=pool.types,
        disk_gib=pool.disk.size_gib,
        min_hosts=pool.nodes.min,
        max_hosts=pool.nodes.max,
        efa=pool.efa,
        availability_zone=pool.availability_zone,
        reserved=reserved_instances(pool.purchase),
        labels=pool.labels,
        images=sorted(images),
    )
