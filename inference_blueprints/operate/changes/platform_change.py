"""A platform's deployed templates beside the new ones."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar, cast

from inference_blueprints.operate.aws.account import Account, readable_errors
from inference_blueprints.operate.check_results import CheckResult
from inference_blueprints.operate.cloudformation.deployed_stacks import DeployedStack, deployed_stacks
from inference_blueprints.operate.ecs_cluster import cluster_exists
from inference_blueprints.synthesis import stack_templates

# What a comparison of templates finds.


@dataclass(frozen=True, slots=True)
class Held:
    """A change that the next step of a deployment makes otherwise, because it would break what runs."""

    check: str
    """Name of the check that found it."""
    stack: str
    """Name of the stack whose new template is edited."""
    message: str
    """What is held, why, and until when."""
    edit: Callable[[dict[str, Any]], None]
    """Edits the new template for this step."""
    imports: bool = False
    """Whether CloudFormation takes over resources that exist."""

    def __str__(self) -> str:
        """Return check, stack and message on one line."""
        return f"held     {self.check}: {self.stack}: {self.message}"


@dataclass(frozen=True, slots=True)
class Prepared:
    """What `deploy` does before a step, because CloudFormation cannot."""

    check: str
    """Name of the check that found it."""
    stack: str
    """Name of the stack whose change needs it."""
    message: str
    """What is done, and why."""
    act: Callable[[], None]
    """Does it. Raises UserError if it cannot."""

    def __str__(self) -> str:
        """Return check, stack and message on one line."""
        return f"prepares {self.check}: {self.stack}: {self.message}"


Finding = CheckResult | Held | Prepared


#: Stands for a reference in a text.
REFERENCE = "\N{OBJECT REPLACEMENT CHARACTER}"


def has_reference(value: Any) -> bool:
    """Whether CloudFormation computes a value or a part of it."""
    if isinstance(value, Mapping):
        return any(name == "Ref" or name.startswith("Fn::") or has_reference(value[name]) for name in value)
    return isinstance(value, list) and any(has_reference(each) for each in value)


def spelled(value: Any) -> str:
    """Return a text, with `REFERENCE` for what CloudFormation computes."""
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping) and "Fn::Join" in value:
        separator, parts = value["Fn::Join"]
        if isinstance(parts, list):
            return str(separator).join(spelled(part) for part in parts)
    return REFERENCE


def listed(value: Any) -> list[Any]:
    """Return a list; a value that is none is its only member."""
    return value if isinstance(value, list) else [value]


def kubernetes_objects(manifest: Any) -> Iterator[tuple[str, str, str]]:
    """Yield kind, namespace and name of each object of a manifest. The namespace may be empty."""
    for item in json.loads(spelled(manifest)):
        metadata = item["metadata"]
        yield item["kind"], metadata.get("namespace", ""), metadata["name"]


def references(value: Any) -> Iterator[str]:
    """Yield the logical IDs that a value refers to."""
    if isinstance(value, list):
        for each in value:
            yield from references(each)
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            if name == "Ref":
                yield str(inner)
            elif name == "Fn::GetAtt":
                yield str(inner[0] if isinstance(inner, list) else inner.partition(".")[0])
            else:
                yield from references(inner)


def stack_outputs_of(value: Any) -> Iterator[tuple[str, str]]:
    """Yield stack and name of each output of another stack that a value refers to."""
    if isinstance(value, list):
        for each in value:
            yield from stack_outputs_of(each)
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            if name == "Fn::GetStackOutput":
                yield inner["StackName"], inner["OutputName"]
            else:
                yield from stack_outputs_of(inner)


Template = Mapping[str, Any]
Resource = Mapping[str, Any]
_Answer = TypeVar("_Answer")
_TEMPLATE = ".template.json"
_GROUP: Final = "AWS::AutoScaling::AutoScalingGroup"
ASSOCIATIONS: Final = "AWS::ECS::ClusterCapacityProviderAssociations"
#: The CDK deletes these before it creates them again (aws-cdk, deploy-stack: isCreationFailure).
FAILED_CREATIONS = ("ROLLBACK_COMPLETE", "ROLLBACK_FAILED")


@dataclass(frozen=True, slots=True)
class PlatformChange:
    """What is deployed of a platform, and what would be."""

    account: Account
    """Account and region. Only read."""
    stacks: Mapping[str, DeployedStack]
    """The deployed stacks by name."""
    deployed: Mapping[str, Template]
    """Their templates. A stack that was never complete has none."""
    new: Mapping[str, Template]
    """The new templates, by the name of the stack."""
    expires_existing: bool = False
    """Whether the user agrees that objects that exist are deleted by a new rule."""
    # What AWS answered, so that several checks of a deployment share one answer.
    _answers: dict[tuple[str, str], Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    def changed_resources(self) -> Iterator[tuple[str, str, Resource, Resource]]:
        """Yield stack, logical ID, old and new definition of each resource that stays."""
        for stack, template in self.deployed.items():
            resources = self.new.get(stack, {}).get("Resources", {})
            for name, old in template.get("Resources", {}).items():
                if name in resources and resources[name]["Type"] == old["Type"]:
                    yield stack, name, old, resources[name]

    def added_resources(self) -> Iterator[tuple[str, str, Resource]]:
        """Yield stack, logical ID and definition of each resource that a stack does not have yet."""
        for stack, template in self.new.items():
            resources = self.deployed.get(stack, {}).get("Resources", {})
            for name, resource in template.get("Resources", {}).items():
                if name not in resources:
                    yield stack, name, resource

    def dropped_resources(self) -> Iterator[tuple[str, str, Resource]]:
        """Yield stack, logical ID and definition of each resource that a stack loses.

        Stacks that are not deployed any more keep what they have until `prune`.
        """
        for stack, template in self.deployed.items():
            if stack not in self.new:
                continue
            resources = self.new[stack].get("Resources", {})
            for name, resource in template.get("Resources", {}).items():
                if name not in resources:
                    yield stack, name, resource

    def physical_ids(self, stack: str) -> dict[str, str]:
        """Return the physical IDs of a deployed stack by logical ID."""

        def read() -> dict[str, str]:
            pages = self.account.client("cloudformation").get_paginator("list_stack_resources")
            return {
                resource["LogicalResourceId"]: resource["PhysicalResourceId"]
                for page in pages.paginate(StackName=self.stacks[stack].stack_id)
                for resource in page["StackResourceSummaries"]
                if "PhysicalResourceId" in resource
            }

        return self._asked_once("physical IDs", stack, read)

    def auto_scaling_groups(self, stack: str, resources: Mapping[str, Resource]) -> list[str]:
        """Return the names of the groups among resources of a deployed stack."""
        groups = {name for name, each in resources.items() if each["Type"] == _GROUP}
        ids = self.physical_ids(stack) if groups else {}
        return [name for logical_id, name in ids.items() if logical_id in groups]

    def ecs_cluster(self, stack: str) -> str | None:
        """Return the cluster of a stack's capacity providers. None if it is gone, or there are none."""
        resources = self.deployed[stack]["Resources"].values()
        names = [str(each["Properties"]["Cluster"]) for each in resources if each["Type"] == ASSOCIATIONS]
        return next((name for name in names if self._has_cluster(name)), None)

    def _has_cluster(self, name: str) -> bool:
        return self._asked_once("cluster", name, lambda: cluster_exists(self.account, name))

    def _asked_once(self, what: str, name: str, read: Callable[[], _Answer]) -> _Answer:
        if (what, name) not in self._answers:
            with readable_errors():
                self._answers[what, name] = read()
        return cast("_Answer", self._answers[what, name])


def read_change(
    account: Account, platform: str, assembly: Path, *, expires_existing: bool = False
) -> PlatformChange:
    """Read the deployed templates of a platform, and those of an assembly.

    platform: `metadata.name`.
    assembly: The folder that ``cdk synth`` wrote.
    expires_existing: See `PlatformChange`.
    Raises UserError if AWS refuses to list the stacks or to return a template.
    """
    cloudformation = account.client("cloudformation")
    with readable_errors():
        stacks = {stack.name: stack for stack in deployed_stacks(cloudformation, platform)}
        # "Processed" has the resources of transforms (CloudFormation API Reference, GetTemplate).
        deployed = {
            name: cloudformation.get_template(StackName=stack.stack_id, TemplateStage="Processed")[
                "TemplateBody"
            ]
            for name, stack in stacks.items()
            if stack.status not in (*FAILED_CREATIONS, "REVIEW_IN_PROGRESS")
        }
    new = {
        file.name.removesuffix(_TEMPLATE): json.loads(file.read_text(encoding="utf-8"))
        for file in stack_templates(assembly)
    }
    return PlatformChange(account, stacks, deployed, new, expires_existing)
