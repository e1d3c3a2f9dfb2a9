"""CloudFormation as removals and verifications see it; moto's needs packages that nothing else needs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from botocore.exceptions import ClientError

TAG = "inference-blueprints:platform"
PAGE = 10


class FakeCloudFormation:
    """Stacks by name; events of their deletion in pages.

    failing: Stacks whose deletion fails, by name: resource type and reason.
    kept: What stacks keep, by name: resource type.
    rolled_back: What the rollback of their creation kept, by name: resource types and physical IDs.
    denied: Operations that are not allowed.
    templates: What stacks were deployed with, by name.
    outputs: What stacks say of themselves, by name.
    """

    def __init__(self) -> None:
        self._stacks: dict[str, dict[str, Any]] = {}
        self.failing: dict[str, tuple[str, str]] = {}
        self.kept: dict[str, str] = {}
        self.rolled_back: dict[str, list[tuple[str, str]]] = {}
        self.denied: set[str] = set()
        self.resources: dict[str, list[str]] = {}
        self.templates: dict[str, dict[str, Any]] = {}
        self.outputs: dict[str, dict[str, str]] = {}

    def add(self, name: str, platform: str = "try", status: str = "CREATE_COMPLETE") -> None:
        self._stacks[name] = {
            "StackName": name,
            "StackId": f"arn:{name}",
            "StackStatus": status,
            "Tags": [{"Key": TAG, "Value": platform}],
            "Protected": True,
        }

    def delete(self, name: str) -> None:
        del self._stacks[name]

    def names(self) -> list[str]:
        return [name for name, stack in self._stacks.items() if stack["StackStatus"] != "DELETE_COMPLETE"]

    def status(self, name: str) -> str | None:
        """Return the status of a stack. None if there is none."""
        return str(self._stacks[name]["StackStatus"]) if name in self.names() else None

    def update_termination_protection(self, *, EnableTerminationProtection: bool, StackName: str) -> None:  # noqa: N803
        self._find(StackName)["Protected"] = EnableTerminationProtection

    def delete_stack(self, *, StackName: str) -> None:  # noqa: N803
        if "DeleteStack" in self.denied:
            message = "User x is not authorized to perform: cloudformation:DeleteStack"
            raise ClientError({"Error": {"Code": "AccessDenied", "Message": message}}, "DeleteStack")
        stack = self._find(StackName)
        assert not stack["Protected"], "AWS refuses to delete a protected stack"
        stack["StackStatus"] = "DELETE_IN_PROGRESS"

    def describe_stacks(self, *, StackName: str) -> dict[str, Any]:  # noqa: N803
        """Answer as it is, then let what is under way come to its end."""
        if StackName.removeprefix("arn:") not in self._stacks:
            message = f"Stack with id {StackName} does not exist"
            raise ClientError({"Error": {"Code": "ValidationError", "Message": message}}, "DescribeStacks")
        stack = self._find(StackName)
        outputs = self.outputs.get(StackName, {})
        answer = {
            **stack,
            "Outputs": [{"OutputKey": key, "OutputValue": value} for key, value in outputs.items()],
        }
        if stack["StackStatus"] == "DELETE_IN_PROGRESS":
            stack["StackStatus"] = (
                "DELETE_FAILED" if stack["StackName"] in self.failing else "DELETE_COMPLETE"
            )
        return {"Stacks": [answer]}

    def get_template(self, *, StackName: str, TemplateStage: str) -> dict[str, Any]:  # noqa: N803
        assert TemplateStage in ("Original", "Processed")
        return {"TemplateBody": self.templates.get(self._find(StackName)["StackName"], {})}

    def get_paginator(self, operation: str) -> _Paginator:
        return _Paginator(getattr(self, f"_{operation}"))

    def _describe_stacks(self) -> Iterator[dict[str, Any]]:
        present = [dict(self._stacks[name]) for name in self.names()]
        for stack in self._stacks.values():  # comes to its end after it was seen
            if stack["StackStatus"] in ("CREATE_IN_PROGRESS", "UPDATE_IN_PROGRESS"):
                stack["StackStatus"] = stack["StackStatus"].replace("IN_PROGRESS", "COMPLETE")
            if stack["StackStatus"] == "DELETE_IN_PROGRESS" and stack["StackName"] not in self.failing:
                stack["StackStatus"] = "DELETE_COMPLETE"
        for first in range(0, len(present), PAGE):
            yield {"Stacks": present[first : first + PAGE]}

    def _list_stacks(self, StackStatusFilter: list[str]) -> Iterator[dict[str, Any]]:  # noqa: N803
        found = [each for each in self._stacks.values() if each["StackStatus"] in StackStatusFilter]
        yield {"StackSummaries": found}

    def _list_stack_resources(self, StackName: str) -> Iterator[dict[str, Any]]:  # noqa: N803
        ids = self.resources.get(self._find(StackName)["StackName"], [])
        yield {"StackResourceSummaries": [{"LogicalResourceId": "Failed"}]}
        yield {"StackResourceSummaries": [{"PhysicalResourceId": each} for each in ids]}

    def _describe_stack_events(self, StackName: str) -> Iterator[dict[str, Any]]:  # noqa: N803
        """Yield the newest first; before the deletion lies an older one that failed."""
        name = self._find(StackName)["StackName"]
        if name in self.failing:
            yield {"StackEvents": [_event("DELETE_FAILED", "It", *self.failing[name])]}
        if name in self.kept:
            yield {"StackEvents": [_event("DELETE_SKIPPED", "It", self.kept[name], "")]}
        begun = {
            **_event("DELETE_IN_PROGRESS", name, "AWS::CloudFormation::Stack", ""),
            "PhysicalResourceId": StackName,
        }
        yield {"StackEvents": [begun, _event("DELETE_FAILED", "Earlier", "AWS::EC2::VPC", "long ago")]}
        for kind, physical_id in self.rolled_back.get(name, []):
            yield {
                "StackEvents": [
                    {**_event("DELETE_SKIPPED", "It", kind, ""), "PhysicalResourceId": physical_id}
                ]
            }

    def _find(self, identifier: str) -> dict[str, Any]:
        return self._stacks[identifier.removeprefix("arn:")]


class _Paginator:
    def __init__(self, pages: Any) -> None:
        self._pages = pages

    def paginate(self, **parameters: object) -> Iterator[dict[str, Any]]:
        pages: Iterator[dict[str, Any]] = self._pages(**parameters)
        return pages


def _event(status: str, logical_id: str, kind: str, reason: str) -> dict[str, str]:
    return {
        "ResourceStatus": status,
        "ResourceType": kind,
        "LogicalResourceId": logical_id,
        "PhysicalResourceId": "its-id",
        "ResourceStatusReason": reason,
    }


def write_assembly(folder: Path, templates: Mapping[str, Mapping[str, Any]]) -> None:
    """Write the templates of stacks and the manifest that names them, as ``cdk synth`` does."""
    artifacts = {}
    for stack, template in templates.items():
        file = f"{stack}.template.json"
        (folder / file).write_text(json.dumps(template), encoding="utf-8")
        artifacts[stack] = {"type": "aws:cloudformation:stack", "properties": {"templateFile": file}}
    artifacts["Tree"] = {"type": "cdk:tree", "properties": {"file": "tree.json"}}
    (folder / "manifest.json").write_text(json.dumps({"artifacts": artifacts}), encoding="utf-8")
