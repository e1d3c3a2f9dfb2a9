"""The discovery store of a platform on Amazon ECS: how frontends and workers find each other."""

from __future__ import annotations

from collections.abc import Sequence

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_ecs as ecs
from aws_cdk import aws_kms as kms
from aws_cdk import aws_servicediscovery as servicediscovery
from constructs import Construct

from inference_blueprints.render.ecs.task_program import (
    PROGRAM_ENTRY_POINT,
    TASK_PROGRAM,
    program_arguments,
    task_program,
)
from inference_constructs.ecs import (
    DiscoveryCertificates,
    DiscoveryFiles,
    DiscoveryMember,
    DiscoveryRoles,
    MemberPlace,
)
from inference_contracts import ecs_names
from inference_contracts.discovery_roles import ENDPOINTS, NAMESPACES
from inference_contracts.discovery_store import DISCOVERY_PEER_PORT


class DiscoveryStack(cdk.Stack):
    """Three members of etcd that know each other by name and by certificate.

    Members are created and changed one after the other, so that two of them serve while the third one starts
    again. Each keeps its data on a file system: a store that loses its data ends the lease of every process,
    and all of them would start again.

    platform: `metadata.name`.
    releases: Deployments with frontends. Each has a certificate, a user and a role of its own.
    cluster_name: Cluster of the store's services, a plain string.
    vpc: VPC of the store.
    members: Security group of the cluster's hosts and tasks, the clients of the store.
    encryption_key: KMS key of the data.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        platform: str,
        releases: Sequence[str],
        cluster_name: str,
        vpc: ec2.IVpc,
        members: ec2.ISecurityGroup,
        encryption_key: kms.IKey,
        env: cdk.Environment,
    ) -> None:
        super().__init__(scope, construct_id, env=env)
        self._platform = platform
        hosts = [ecs_names.discovery_member(platform, index) for index in range(ecs_names.DISCOVERY_MEMBERS)]
        namespaces = sorted(ecs_names.namespace_of(release) for release in releases)
        certificates = DiscoveryCertificates(
            self,
            "Certificates",
            cluster_name=cluster_name,
            hosts=hosts,
            clients=namespaces,
        )
        place = MemberPlace(
            cluster=ecs.Cluster.from_cluster_attributes(self, "Cluster", cluster_name=cluster_name, vpc=vpc),
            namespace=servicediscovery.PrivateDnsNamespace(
                self, "Names", name=ecs_names.discovery_domain(platform), vpc=vpc
            ),
            security_group=self._security_group(vpc, members),
        )
        subnets = vpc.private_subnets[: ecs_names.DISCOVERY_MEMBERS]
        files = DiscoveryFiles(
            self,
            "Files",
            vpc=vpc,
            subnets=subnets,
            encryption_key=encryption_key,
            clients=place.security_group,
        )
        before: list[Construct] = [certificates.made]
        #: Names of the members' services.
        self.services: list[str] = []
        for index in range(ecs_names.DISCOVERY_MEMBERS):
            member = DiscoveryMember(
                self,
                f"Member{index}",
                place=place,
                hosts=hosts,
                index=index,
                subnet=subnets[index % len(subnets)],
                files=files,
                certificates=certificates.members,
            )
            member.service.node.add_dependency(*before)
            before = [member.service]
            self.services.append(member.service.service_name)
        self._add_roles(place, vpc, namespaces, certificates, hosts_ready=before)
        #: Secret whose values `discovery_secret_keys` name: the certificates of the clients.
        self.client_secret_arn = certificates.clients.secret_arn
        cdk.CfnOutput(self, "DiscoveryEndpoints", value=ecs_names.discovery_endpoints(platform))
        cdk.CfnOutput(self, "DiscoveryClients", value=self.client_secret_arn)

    def _add_roles(
        self,
        place: MemberPlace,
        vpc: ec2.IVpc,
        namespaces: Sequence[str],
        certificates: DiscoveryCertificates,
        *,
        hosts_ready: Sequence[Construct],
    ) -> None:
        """Add what lets each deployment write only its own entries."""
        group = ec2.SecurityGroup(
            self, "RolesAccess", vpc=vpc, allow_all_outbound=False, description="Roles of the discovery store"
        )
        group.add_egress_rule(ec2.Peer.any_ipv4(), ec2.Port.tcp(443), "AWS, and registries of images")
        place.security_group.connections.allow_from(
            group, ec2.Port.tcp(ecs_names.DISCOVERY_PORT), "Users and roles"
        )
        roles = DiscoveryRoles(
            self,
            "Roles",
            cluster=place.cluster,
            vpc=vpc,
            security_group=group,
            command=[*PROGRAM_ENTRY_POINT, *program_arguments("discovery_roles")],
            environment={
                TASK_PROGRAM: task_program("discovery_roles"),
                ENDPOINTS: ecs_names.discovery_endpoints(self._platform),
                NAMESPACES: ",".join(namespaces),
            },
            administrator=certificates.administrator,
        )
        # Two members must run before anyone can write.
        roles.service.node.add_dependency(*hosts_ready)

    def _security_group(self, vpc: ec2.IVpc, clients: ec2.ISecurityGroup) -> ec2.SecurityGroup:
        """Let clients reach the members, and members reach each other, their files and AWS."""
        group = ec2.SecurityGroup(
            self, "Access", vpc=vpc, allow_all_outbound=False, description="Members of the discovery store"
        )
        group.add_ingress_rule(clients, ec2.Port.tcp(ecs_names.DISCOVERY_PORT), "Clients")
        group.add_ingress_rule(group, ec2.Port.tcp(DISCOVERY_PEER_PORT), "Members")
        group.add_egress_rule(group, ec2.Port.tcp(DISCOVERY_PEER_PORT), "Members")
        group.add_egress_rule(ec2.Peer.any_ipv4(), ec2.Port.tcp(443), "AWS, and registries of images")
        return group
