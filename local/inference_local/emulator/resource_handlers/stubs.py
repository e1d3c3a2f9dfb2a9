"""Resource types that are accepted but not created: the table of them, and their registration."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from ministack.core.responses import get_account_id, get_region

from inference_catalog.cloudformation_types import cloudformation_types, value_at
from inference_local.emulator.refusals import FEWER_PARTITIONS, NAME_EXISTS, POD_IDENTITY_EXISTS
from inference_local.emulator.resource_handlers.ecs_resources import register_recorded_ecs
from inference_local.emulator.resource_handlers.registry import (
    Made,
    Properties,
    ResourceRequest,
    handled_types,
    register,
)

# Resource types that the emulator lacks and that a local deployment does not need, as data.
#
# Identifiers and attributes are those of the AWS CloudFormation resource and property types reference.


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


class StubHandler:
    """Accepts a resource, but creates nothing.

    stub: Identifier, attributes and required properties.
    """

    def __init__(self, resource_type: str, stub: Stub) -> None:
        self._resource_type = resource_type
        self._stub = stub
        self._type = cloudformation_types().get(resource_type)
        #: Physical ids by account, region and the values that only one resource may have.
        self._made: dict[tuple[str, ...], str] = {}

    def create(self, request: ResourceRequest) -> Made:
        """Record a resource whose name is free, and return the same result for the same resource."""
        name = self._name(request.properties)
        if name in self._made:
            raise self._refusal(name)
        made = self.update(request)
        if name:
            self._made[name] = made[0]
        return made

    def update(self, request: ResourceRequest) -> Made:
        """Return the identifier and the attributes."""
        self._refuse_fewer_partitions(request)
        missing = [name for name in self._stub.required if name not in request.properties]
        if missing:
            raise ValueError(f"{self._resource_type} {request.logical_id} lacks {', '.join(missing)}")
        paths = self._type.create_only if self._type else ()
        fixed = [value_at(request.properties, path) for path in paths]
        seed = f"{request.stack}/{request.logical_id}/{json.dumps(fixed, default=str)}"
        values = {
            **request.properties,
            "account": get_account_id(),
            "region": get_region(),
            "unique": hashlib.sha256(seed.encode()).hexdigest()[:17],
        }
        values["id"] = self._stub.identifier.format_map(values)
        attributes = {name: form.format_map(values) for name, form in self._stub.attributes.items()}
        return values["id"], attributes

    def delete(self, request: ResourceRequest) -> None:
        """Forget the name."""
        self._made = {name: each for name, each in self._made.items() if each != request.physical_id}

    def _name(self, properties: Properties) -> tuple[str, ...]:
        """Return what only one resource may have. Empty if AWS chooses the name."""
        named = [properties.get(each) for each in (self._type.names if self._type else ())]
        if not named or None in named:
            return ()
        return (get_account_id(), get_region(), *map(str, named))

    def _refuse_fewer_partitions(self, request: ResourceRequest) -> None:
        """Refuse a smaller topic. Other resources have no such number."""
        before, after = (each.get("PartitionCount") for each in (request.previous, request.properties))
        if before is not None and int(after or 0) < int(before):
            raise FEWER_PARTITIONS.error(before=str(before), after=str(after))

    def _refusal(self, name: tuple[str, ...]) -> Exception:
        if self._resource_type == "AWS::EKS::PodIdentityAssociation":
            return POD_IDENTITY_EXISTS.error(association=self._made[name])
        return NAME_EXISTS.error(type=self._resource_type, name="|".join(name[2:]))


def register_stubs() -> None:
    """Register every stub of the table. Those of ECS have AWS's refusals.

    Raises RuntimeError if the emulator handles one of the types itself. The stub would hide the better
    result.
    """
    known = sorted(set(STUBS) & handled_types())
    if known:
        raise RuntimeError(f"the emulator handles {', '.join(known)} itself; delete these stubs")
    for resource_type, stub in STUBS.items():
        register(resource_type, StubHandler(resource_type, stub))
    register_recorded_ecs()
