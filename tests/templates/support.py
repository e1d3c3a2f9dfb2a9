"""Reading synthesised templates."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

Resource = dict[str, Any]

_ASSET_HASH = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Templates:
    """A cloud assembly on disk."""

    directory: Path

    @cached_property
    def by_stack(self) -> dict[str, dict[str, Any]]:
        """Template by stack name without the platform's prefix, asset hashes masked."""
        suffix = ".template.json"
        files = sorted(self.directory.glob(f"*{suffix}"))
        return {
            file.name.removesuffix(suffix).split("-", 1)[1]: json.loads(
                _ASSET_HASH.sub("ASSET", file.read_text())
            )
            for file in files
        }

    @cached_property
    def artifacts(self) -> dict[str, dict[str, Any]]:
        """The manifest's stacks by name without the platform's prefix."""
        manifest = json.loads((self.directory / "manifest.json").read_text())
        return {
            name.split("-", 1)[1]: artifact
            for name, artifact in manifest["artifacts"].items()
            if artifact["type"] == "aws:cloudformation:stack"
        }

    def resources(self, resource_type: str, stack: str | None = None) -> list[Resource]:
        """Resources of a type, of one stack or all."""
        return [
            resource
            for name, template in self.by_stack.items()
            if stack in {None, name}
            for resource in template["Resources"].values()
            if resource["Type"] == resource_type
        ]

    def properties(self, resource_type: str, stack: str | None = None) -> list[dict[str, Any]]:
        """Properties of the resources of a type."""
        return [resource.get("Properties", {}) for resource in self.resources(resource_type, stack)]

    def only(self, resource_type: str, stack: str | None = None) -> dict[str, Any]:
        """Properties of the one resource of a type."""
        (properties,) = self.properties(resource_type, stack)
        return properties

    def asset_document(self, name: str) -> Any:
        """JSON document of this name in the one asset that has it."""
        (file,) = self.directory.glob(f"asset.*/{name}")
        return json.loads(file.read_text("utf-8"))

    def charts(self, stack: str) -> dict[str, dict[str, Any]]:
        """Chart resource by Helm release, in the template's order."""
        return {
            resource["Properties"]["Release"]: resource
            for resource in self.resources("Custom::AWSCDK-EKS-HelmChart", stack)
        }

    def manifests(self, stack: str) -> Iterator[dict[str, Any]]:
        """Kubernetes objects, with references spelled ``${…}``."""
        for properties in self.properties("Custom::AWSCDK-EKS-KubernetesResource", stack):
            yield from json.loads(text(properties["Manifest"]))

    def manifest(self, stack: str, kind: str, name: str) -> dict[str, Any]:
        """One Kubernetes object."""
        (found,) = [
            manifest
            for manifest in self.manifests(stack)
            if (manifest["kind"], manifest["metadata"]["name"]) == (kind, name)
        ]
        return found


def text(value: Any) -> str:
    """Spell a template's value as one string, with references as ``${…}``."""
    spelled = value if isinstance(value, str) else json.dumps(value)
    match value:
        case {"Fn::Join": [separator, parts]}:
            spelled = str(separator).join(text(part) for part in parts)
        case {"Fn::Sub": str(template)}:
            spelled = template
        case {"Fn::GetAtt": [resource, attribute]}:
            spelled = f"${{{resource}.{attribute}}}"
        case {"Ref": name}:
            spelled = f"${{{name}}}"
        case {"Fn::GetStackOutput": {"StackName": stack, "OutputName": output}}:
            spelled = f"${{{stack}.{output}}}"
        case {"Fn::Select": [index, _]}:
            spelled = f"${{Fn::Select.{index}}}"
    return spelled


def listed(value: Any) -> list[Any]:
    """A value as a list, whether the template has one or several."""
    return value if isinstance(value, list) else [value]


def statements(resource: Resource) -> Iterator[dict[str, Any]]:
    """Statements of every policy that a resource holds, trust policies apart."""
    properties = resource.get("Properties", {})
    documents = [properties.get("PolicyDocument"), properties.get("KeyPolicy")]
    documents += [
        policy["PolicyDocument"] for policy in properties.get("Policies", []) if isinstance(policy, dict)
    ]
    for document in documents:
        if document:
            yield from document["Statement"]
