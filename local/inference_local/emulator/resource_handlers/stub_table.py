"""Resource types that the emulator lacks and that a local deployment does not need, as data.

Identifiers and attributes are those of the AWS CloudFormation resource and property types reference.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType


@dataclass(frozen=True)
class Stub:
    """A resource type that is accepted, but not created."""

    purpose: str
    """One sentence for the run report: what is accepted and what does not happen."""
    identifier: str
    """The physical id (``Ref``), as a format string over the resource's properties, ``{account}``,
    ``{region}`` and ``{unique}`` (17 hexadecimal digits, unique to this resource of this stack)."""
    attributes: Mapping[str, str] = field(default_factory=dict)
    """Values of ``Fn::GetAtt``, as format strings over the same values and ``{id}``, the physical id."""
    required: tuple[str, ...] = ()
    """Required properties. Without them AWS and the stub refuse the resource."""


STUBS: Mapping[str, Stub] = MappingProxyType(
    {
        "AWS::EC2::EIP": Stub(
            "an Elastic IP address is recorded; no address is allocated",
            "203.0.113.1",  # RFC 5737: a documentation address that is never routed
            {"AllocationId": "eipalloc-{unique}", "PublicIp": "{id}"},
        ),
        "AWS::EC2::NatGateway": Stub(
            "a NAT gateway is recorded; no traffic is routed",
            "nat-{unique}",
            {"NatGatewayId": "{id}"},
            ("SubnetId",),
        ),
        "AWS::EC2::FlowLog": Stub(
            "a flow log is recorded; there are no flows to log",
            "fl-{unique}",
            {"Id": "{id}"},
            ("ResourceId", "ResourceType"),
        ),
        "AWS::EC2::SecurityGroupIngress": Stub(
            "a rule is recorded; no traffic is filtered", "sgr-{unique}", {"Id": "{id}"}, ("IpProtocol",)
        ),
        "AWS::EC2::SecurityGroupEgress": Stub(
            "a rule is recorded; no traffic is filtered",
            "sgr-{unique}",
            {"Id": "{id}"},
            ("GroupId", "IpProtocol"),
        ),
        "AWS::EKS::Addon": Stub(
            "an add-on is recorded; nothing is installed into the cluster",
            "{ClusterName}|{AddonName}",
            {"Arn": "arn:aws:eks:{region}:{account}:addon/{ClusterName}/{AddonName}/{unique}"},
            ("AddonName", "ClusterName"),
        ),
        "AWS::EKS::AccessEntry": Stub(
            "an access entry is recorded; access is not enforced",
            "{PrincipalArn}|{ClusterName}",
            {"AccessEntryArn": "arn:aws:eks:{region}:{account}:access-entry/{ClusterName}/{unique}"},
            ("ClusterName", "PrincipalArn"),
        ),
        "AWS::EKS::PodIdentityAssociation": Stub(
            "an association is recorded; no pod runs and assumes the role",
            "arn:aws:eks:{region}:{account}:podidentityassociation/{ClusterName}/a-{unique}",
            {"AssociationArn": "{id}", "AssociationId": "a-{unique}"},
            ("ClusterName", "Namespace", "RoleArn", "ServiceAccount"),
        ),
        "AWS::ECS::CapacityProvider": Stub(
            "a capacity provider is recorded; no host starts",
            "{Name}",
            {},
            # CloudFormation would choose a name, and services of this library name their provider.
            ("Name",),
        ),
        "AWS::ECS::ClusterCapacityProviderAssociations": Stub(
            "a cluster's capacity providers are recorded; no task runs on them",
            "{Cluster}",
            {},
            ("Cluster",),
        ),
        "AWS::ApplicationAutoScaling::ScalableTarget": Stub(
            "a scalable target is recorded; nothing is scaled",
            "{ResourceId}|{ScalableDimension}|{ServiceNamespace}",
            {"Id": "{id}"},
            ("MaxCapacity", "MinCapacity", "ResourceId", "ScalableDimension", "ServiceNamespace"),
        ),
        "AWS::ApplicationAutoScaling::ScalingPolicy": Stub(
            "a policy is recorded; nothing is scaled",
            "arn:aws:autoscaling:{region}:{account}:scalingPolicy:{unique}:policyName/{PolicyName}",
            {"Arn": "{id}"},
            ("PolicyName", "PolicyType"),
        ),
        "AWS::MSK::Topic": Stub(
            "a topic is recorded; no broker runs",
            "arn:aws:kafka:{region}:{account}:topic/{TopicName}/{unique}",
            {"TopicArn": "{id}"},
            ("ClusterArn", "PartitionCount", "ReplicationFactor", "TopicName"),
        ),
        "AWS::SSM::Document": Stub(
            "a document is recorded; no instance with an SSM agent runs",
            "document-{unique}",
            {},
            ("Content",),
        ),
        "Custom::VpcRestrictDefaultSG": Stub(
            "the default security group keeps its rules; no traffic is filtered",
            "restrict-{DefaultSecurityGroupId}",
            {},
            ("DefaultSecurityGroupId",),
        ),
    }
)
