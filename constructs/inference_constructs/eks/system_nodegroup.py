"""The nodes for the platform's own controllers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_iam as iam
from constructs import Construct

from inference_catalog import catalogue, node_facts
from inference_constructs.findings import acknowledge_managed_policies, acknowledge_wildcards
from inference_constructs.policy_statements import SESSIONS


class NodeRole(iam.CfnRole):
    """The IAM role of a node, which may join the cluster, pull images and accept sessions.

    Pods, including those of the network plug-in, have their own permissions through Pod Identity
    (https://docs.aws.amazon.com/eks/latest/userguide/create-node-role.html).
    """

    def __init__(self, scope: Construct, construct_id: str) -> None:
        prefix = f"arn:{cdk.Stack.of(scope).partition}:iam::aws:policy/"
        policies = [f"{prefix}AmazonEKSWorkerNodePolicy", f"{prefix}AmazonEC2ContainerRegistryPullOnly"]
        super().__init__(
            scope,
            construct_id,
            assume_role_policy_document={
                "Version": "2012-10-17",
                "Statement": [
                    {
                        "Effect": "Allow",
                        "Principal": {"Service": "ec2.amazonaws.com"},
                        "Action": "sts:AssumeRole",
                    }
                ],
            },
            managed_policy_arns=policies,
            policies=[
                iam.CfnRole.PolicyProperty(
                    policy_name="Sessions",
                    policy_document={"Version": "2012-10-17", "Statement": [SESSIONS]},
                )
            ],
        )
        acknowledge_wildcards(self, [SESSIONS], "The actions of Session Manager's agent know no resources.")
        acknowledge_managed_policies(
            self, policies, "AWS maintains these two policies with a node's permissions for EKS and ECR."
        )


class SystemNodegroup(Construct):
    """A small managed node group on Bottlerocket, for Karpenter and controllers that must start before it.

    Parameters
    ----------
    cluster_name
        Cluster that the nodes join.
    kubernetes_version
        Version of the cluster. It is set explicitly, so that an update of the cluster also updates the nodes.
    subnets
        Private subnets.
    instance_type
        EC2 instance type, x86-64.
    nodes
        Number of nodes. One may be unavailable during an update.
    disk_gib
        Size of the data volume in GiB.
    tags
        Tags of instances and volumes. A node group's own tags do not apply to these.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster_name: str,
        kubernetes_version: str,
        subnets: Sequence[ec2.ISubnet],
        instance_type: str = node_facts.INSTANCE_TYPE,
        nodes: int = node_facts.NODES,
        disk_gib: int = node_facts.DISK_GIB,
        tags: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        super().__init__(scope, construct_id)
        template = self._launch_template(instance_type, disk_gib, tags)
        self.nodegroup = eks.CfnNodegroup(
            self,
            "Nodegroup",
            cluster_name=cluster_name,
            node_role=NodeRole(self, "Role").attr_arn,
            subnets=[subnet.subnet_id for subnet in subnets],
            ami_type="BOTTLEROCKET_x86_64",
            launch_template=eks.CfnNodegroup.LaunchTemplateSpecificationProperty(
                id=template.ref, version=template.attr_latest_version_number
            ),
            node_repair_config=eks.CfnNodegroup.NodeRepairConfigProperty(enabled=True),
            scaling_config=eks.CfnNodegroup.ScalingConfigProperty(
                min_size=nodes, desired_size=nodes, max_size=max(nodes, node_facts.MAXIMUM_NODES)
            ),
            version=kubernetes_version,
            update_config=eks.CfnNodegroup.UpdateConfigProperty(max_unavailable=1),
        )

    def _launch_template(
        self, instance_type: str, disk_gib: int, tags: Mapping[str, str]
    ) -> ec2.CfnLaunchTemplate:
        """Require IMDSv2, block it for containers, and encrypt both volumes of Bottlerocket."""
        data = ec2.CfnLaunchTemplate.LaunchTemplateDataProperty
        tag_list = [cdk.CfnTag(key=key, value=value) for key, value in tags.items()]
        return ec2.CfnLaunchTemplate(
            self,
            "LaunchTemplate",
            launch_template_data=data(
                instance_type=instance_type,
                metadata_options=ec2.CfnLaunchTemplate.MetadataOptionsProperty(
                    http_tokens="required", http_put_response_hop_limit=1
                ),
                block_device_mappings=[
                    _encrypted_volume("/dev/xvda", catalogue.shipped().bottlerocket.root_volume_gib),
                    _encrypted_volume("/dev/xvdb", disk_gib),
                ],
                tag_specifications=[
                    ec2.CfnLaunchTemplate.TagSpecificationProperty(resource_type=kind, tags=tag_list)
                    for kind in ("instance", "volume")
                ],
            ),
        )


def _encrypted_volume(device: str, size_gib: int) -> ec2.CfnLaunchTemplate.BlockDeviceMappingProperty:
    """Return an encrypted gp3 volume."""
    return ec2.CfnLaunchTemplate.BlockDeviceMappingProperty(
        device_name=device,
        ebs=ec2.CfnLaunchTemplate.EbsProperty(
            volume_size=size_gib, volume_type="gp3", encrypted=True, delete_on_termination=True
        ),
    )
