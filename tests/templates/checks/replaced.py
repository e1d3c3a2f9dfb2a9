"""What a deployment from one set of templates to another does beyond changing things in place.

CloudFormation makes a new resource before it deletes the old one, what a stack no longer names goes at the
end of its own update, and what others stand on is updated before them. From that follow the hazards here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from cfnlint.schema.manager import PROVIDER_SCHEMA_MANAGER

from tests.templates.strategies import ACCOUNT
from tests.templates.support import Resource, Templates, text

#: What CDK's own function makes: its service token and cluster are what they stand on.
_CUSTOM_IDENTITY = {
    "Custom::AWSCDK-EKS-HelmChart": ("ClusterName", "Namespace", "Release"),
    "Custom::S3AutoDeleteObjects": ("BucketName",),
}
_MANIFEST = "Custom::AWSCDK-EKS-KubernetesResource"
#: Properties that are unique in an account together, where the schema does not make them the physical id
#: (AWS CloudFormation resource reference; EKS takes one association a service account).
_UNIQUE = {
    "AWS::EC2::SecurityGroupEgress": ("GroupId", "IpProtocol", "FromPort", "DestinationSecurityGroupId"),
    "AWS::EC2::SecurityGroupIngress": ("GroupId", "IpProtocol", "FromPort", "SourceSecurityGroupId"),
    "AWS::EKS::AccessEntry": ("ClusterName", "PrincipalArn"),
    "AWS::EKS::Addon": ("ClusterName", "AddonName"),
    "AWS::EKS::Cluster": ("Name",),
    "AWS::EKS::PodIdentityAssociation": ("ClusterName", "Namespace", "ServiceAccount"),
    "AWS::ElasticLoadBalancingV2::ListenerRule": ("ListenerArn", "Priority"),
    "AWS::Route53::RecordSet": ("HostedZoneId", "Name", "Type"),
    "AWS::SQS::Queue": ("QueueName",),
} | _CUSTOM_IDENTITY


@dataclass(frozen=True)
class Replaced:
    """A resource that CloudFormation makes anew, and the property whose change asks for it."""

    stack: str
    logical_id: str
    resource_type: str
    property: str


def replaced(before: Templates, after: Templates) -> list[Replaced]:
    """Return the resources that CloudFormation makes anew."""
    return [
        Replaced(stack, logical_id, old["Type"], changed)
        for stack, logical_id, old, new in _in_both(before, after)
        for changed in _replacing(old, new)
    ]


def retyped(before: Templates, after: Templates) -> list[str]:
    """Return logical ids that stand for another type afterwards, which CloudFormation refuses."""
    return [
        f"{stack} {logical_id}: {old['Type']} becomes {new['Type']}"
        for stack, logical_id, old, new in _in_both(before, after)
        if old["Type"] != new["Type"]
    ]


def moved(before: Templates, after: Templates) -> list[str]:
    """Return what would be made a second time, before its old owner lets go of it."""
    owners = {name: owner for owner, resource in _all(before) for name in identities(resource)}
    return [
        f"{name}: from {' '.join(owners[name])} to {' '.join(owner)}"
        for owner, resource in _all(after)
        for name in identities(resource)
        if owners.get(name, owner) != owner
    ]


def pulled_away(before: Templates, after: Templates) -> list[str]:
    """Return resources that go, or are made anew, while a stack that is updated later or never uses them."""
    gone = {
        (stack, logical_id)
        for (stack, logical_id), _ in _all(before)
        if stack in after.by_stack and logical_id not in after.by_stack[stack]["Resources"]
    }
    anew = {(each.stack, each.logical_id) for each in replaced(before, after)}
    return sorted(
        f"{user} uses {stack} {logical_id}"
        for user, template in before.by_stack.items()
        for stack, output in _weak_references(template)
        for logical_id in _referenced(before.by_stack[stack]["Outputs"][output]["Value"])
        if stack != user and (stack, logical_id) in gone | anew
    )


def dangling(templates: Templates) -> list[str]:
    """Return references to outputs that no stack has."""
    return [
        f"{user} refers to {stack} {output}"
        for user, template in templates.by_stack.items()
        for stack, output in _weak_references(template)
        if output not in templates.by_stack.get(stack, {}).get("Outputs", {})
    ]


def identities(resource: Resource) -> Iterator[str]:
    """Yield what a resource is outside of CloudFormation, where there can be one of it only."""
    properties = resource.get("Properties", {})
    if resource["Type"] == _MANIFEST:
        for item in json.loads(text(properties["Manifest"])):
            metadata = item["metadata"]
            yield " ".join([item["kind"], metadata.get("namespace", ""), metadata["name"]])
        return
    names = [text(properties.get(name, "")) for name in _UNIQUE.get(resource["Type"], ())]
    if any(names):  # Without, CloudFormation makes a name.
        yield " ".join([resource["Type"], *names])


def _all(templates: Templates) -> Iterator[tuple[tuple[str, str], Resource]]:
    for stack, template in templates.by_stack.items():
        for logical_id, resource in template["Resources"].items():
            yield (stack, logical_id), resource


def _in_both(before: Templates, after: Templates) -> Iterator[tuple[str, str, Resource, Resource]]:
    later = dict(_all(after))
    for (stack, logical_id), old in _all(before):
        if (stack, logical_id) in later:
            yield stack, logical_id, old, later[stack, logical_id]


def _replacing(old: Resource, new: Resource) -> Iterator[str]:
    """Yield the properties whose change needs a new resource."""
    for path in _create_only(old["Type"]):
        if _at(old["Properties"], path) != _at(new["Properties"], path):
            yield path


@cache
def _create_only(resource_type: str) -> tuple[str, ...]:
    """Return the paths of properties that are given once, as CloudFormation's own schema says."""
    if not resource_type.startswith("AWS::") or resource_type == "AWS::CDK::Metadata":
        return ()
    schema = PROVIDER_SCHEMA_MANAGER.get_resource_schema("us-west-2", resource_type).schema
    names = [*schema.get("createOnlyProperties", ()), *schema.get("conditionalCreateOnlyProperties", ())]
    return tuple(name.removeprefix("/properties/") for name in names)


def _at(properties: Mapping[str, Any], path: str) -> str:
    """Spell a property; whether the blueprint or the credentials name the account is no difference."""
    value: Any = properties
    for part in path.split("/"):
        value = value.get(part) if isinstance(value, dict) else None
    return json.dumps(_spelled(value)).replace(ACCOUNT, "${AWS::AccountId}")


def _spelled(value: Any) -> Any:
    """Spell the references in a value."""
    if isinstance(value, dict) and not any(key.startswith("Fn::") or key == "Ref" for key in value):
        return {key: _spelled(below) for key, below in value.items()}
    return [_spelled(each) for each in value] if isinstance(value, list) else text(value)


def _weak_references(value: Any) -> Iterator[tuple[str, str]]:
    """Yield stack, without the platform's prefix, and output of each reference to another stack."""
    if isinstance(value, dict):
        if output := value.get("Fn::GetStackOutput"):
            yield output["StackName"].split("-", 1)[1], output["OutputName"]
        for below in value.values():
            yield from _weak_references(below)
    elif isinstance(value, list):
        for below in value:
            yield from _weak_references(below)


def _referenced(value: Any) -> Iterator[str]:
    """Yield the logical ids that an output's value is made of."""
    match value:
        case {"Ref": str(name)} | {"Fn::GetAtt": [str(name), *_]}:
            yield name
        case dict():
            for below in value.values():
                yield from _referenced(below)
        case list():
            for below in value:
                yield from _referenced(below)
