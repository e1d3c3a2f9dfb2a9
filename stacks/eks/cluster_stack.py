"""The EKS control plane, the platform's own nodes, and Karpenter's permissions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_kms as kms
from constructs import Construct

from inference_blueprints.spec.types import EksCluster
from inference_catalog.charts import charts
from inference_constructs import acknowledge_managed_policies
from inference_constructs.capacity import KarpenterIdentity
from inference_constructs.eks import (
    AFTER_NODES,
    BEFORE_NODES,
    SECRETS,
    ClusterAddOns,
    InferenceCluster,
    KubectlAccess,
    PodIdentity,
    SystemNodegroup,
)
from inference_constructs.operations import EksControlledCluster


class ClusterStack(cdk.Stack):
    """A cluster that is ready for charts.

    eks: Section of the blueprint.
    add_on_versions: Version by EKS add-on. For None, EKS chooses the version.
    cluster_name: `metadata.name`, a plain string.
    vpc: VPC whose private subnets hold the control plane's interfaces and the nodes.
    load_balancer_security_group: Security group of the models' load balancer.
    model_ports: TCP ports on which models answer, 1 to 65535.
    secrets_key: KMS key of Kubernetes secrets.
    secrets_in_pods: Whether pods read secrets of Secrets Manager.
    karpenter_reboots: Whether Karpenter reboots nodes before it replaces them.
    instance_tags: Tags of instances and volumes.
    log_retention_days: Days for which logs of the control plane are kept; None without observability.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        eks: EksCluster,
        add_on_versions: Mapping[str, str | None],
        cluster_name: str,
        vpc: ec2.IVpc,
        load_balancer_security_group: ec2.ISecurityGroup,
        model_ports: Iterable[int],
        secrets_key: kms.IKey,
        secrets_in_pods: bool,
        karpenter_reboots: bool,
        instance_tags: Mapping[str, str],
        log_retention_days: int | None,
        env: cdk.Environment,
    ) -> None:
        super().__init__(scope, construct_id, env=env, termination_protection=True)
        self.subnet_ids = [subnet.subnet_id for subnet in vpc.private_subnets]
        self.cluster = InferenceCluster(
            self,
            "Cluster",
            cluster_name=cluster_name,
            version=eks.version,
            vpc=vpc,
            public_endpoint=eks.endpoint_access == "publicAndPrivate",
            secrets_key=secrets_key,
            extended_support=eks.extended_support,
            log_retention_days=log_retention_days,
        )
        self.karpenter = KarpenterIdentity(
            self, "Karpenter", cluster_name=cluster_name, reboots=karpenter_reboots
        )
        self.security_group_id = self.cluster.cluster_security_group_id
        self._add_system_nodes(
            eks.version, cluster_name, vpc, instance_tags, add_on_versions, secrets_in_pods=secrets_in_pods
        )
        self._admit(load_balancer_security_group, model_ports)
        self.access = KubectlAccess.from_cluster(self.cluster, cluster_name=cluster_name)

    def controlled(self, stack: cdk.Stack) -> EksControlledCluster:
        """Return the cluster as controllers in another stack reach it."""
        return EksControlledCluster(
            self.access.cluster_name,
            cluster=self.access.import_cluster(stack),
            endpoint=self.cluster.cluster_endpoint,
            authority=self.cluster.cluster_certificate_authority_data,
            security_group_id=self.security_group_id,
            model_namespace=charts()["dynamo-model"].namespace,
        )

    def _add_system_nodes(
        self,
        kubernetes_version: str,
        cluster_name: str,
        vpc: ec2.IVpc,
        instance_tags: Mapping[str, str],
        add_on_versions: Mapping[str, str | None],
        *,
        secrets_in_pods: bool,
    ) -> None:
        """Add daemons, then nodes, then the add-ons that need nodes."""
        policy = f"arn:{self.partition}:iam::aws:policy/AmazonEKS_CNI_Policy"
        network_plugin = PodIdentity(
            self,
            "NetworkPlugin",
            cluster_name=cluster_name,
            namespace="kube-system",
            service_accounts=["aws-node"],
            managed_policy_arns=[policy],
        )
        acknowledge_managed_policies(
            network_plugin, [policy], "AWS maintains this policy with its network plug-in's permissions."
        )
        daemons = ClusterAddOns(
            self, "Daemons", cluster_name=cluster_name, add_ons=BEFORE_NODES, versions=add_on_versions
        )
        nodes = SystemNodegroup(
            self,
            "SystemNodes",
            cluster_name=cluster_name,
            kubernetes_version=kubernetes_version,
            subnets=vpc.private_subnets,
            tags=instance_tags,
        )
        add_ons = [*AFTER_NODES, SECRETS] if secrets_in_pods else AFTER_NODES
        deployments = ClusterAddOns(
            self, "Deployments", cluster_name=cluster_name, add_ons=add_ons, versions=add_on_versions
        )
        for earlier, later in (
            (self.cluster, self.karpenter),
            (self.cluster, network_plugin),
            (self.cluster, daemons),
            (daemons, nodes),
            (network_plugin, nodes),
            (nodes, deployments),
        ):
            later.node.add_dependency(earlier)

    def _admit(self, load_balancer: ec2.ISecurityGroup, ports: Iterable[int]) -> None:
        """Let the models' load balancer reach pods, which have the cluster's security group."""
        for port in sorted(set(ports)):
            ec2.CfnSecurityGroupIngress(
                self,
                f"ModelsIngress{port}",
                description="Models, from their load balancer",
                from_port=port,
                to_port=port,
                group_id=self.security_group_id,
                ip_protocol="tcp",
                source_security_group_id=load_balancer.security_group_id,
            )
            ec2.CfnSecurityGroupEgress(
                self,
                f"ModelsEgress{port}",
                description="Models, to their pods",
                from_port=port,
                to_port=port,
                group_id=load_balancer.security_group_id,
                ip_protocol="tcp",
                destination_security_group_id=self.security_group_id,
            )
