"""CloudFormation's limits on one stack.

https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/cloudformation-limits.html
"""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass
from typing import Any

from tests.templates.support import Templates, text

RESOURCES = 500
OUTPUTS = 200
TEMPLATE_BYTES = 1_000_000
#: What Lambda takes as a custom resource's event: CloudFormation invokes it asynchronously, with the
#: properties of the resource and, in an update, the old ones too
#: (https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html).
EVENT_BYTES = 256 * 1024
#: Of all variables of a function together (the same page).
VARIABLES_BYTES = 4096
#: Of a role's policies that are part of it together
#: (https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html).
POLICY_BYTES = 10_240
# What stands for a name that CloudFormation gives is at most about as long as an ARN or a queue's address.
_REFERENCE = re.compile(r"\$\{[^}]*\}")
_REFERENCE_BYTES = 110


@dataclass(frozen=True)
class Size:
    """How large one stack's template is."""

    resources: int
    outputs: int
    template_bytes: int
    largest_update_event_bytes: int
    largest_variables_bytes: int
    largest_policies_bytes: int

    @classmethod
    def of(cls, template: dict[str, Any], template_bytes: int) -> Size:
        """Measure a template that takes so many bytes as it is uploaded."""
        custom = [
            len(json.dumps(resource["Properties"]))
            for resource in template["Resources"].values()
            if resource["Type"].startswith("Custom::")
        ]
        return cls(
            resources=len(template["Resources"]),
            outputs=len(template.get("Outputs", {})),
            template_bytes=template_bytes,
            largest_update_event_bytes=2 * max(custom, default=0),
            largest_variables_bytes=max(map(_variables, _of(template, "AWS::Lambda::Function")), default=0),
            largest_policies_bytes=max(_policies(template).values(), default=0),
        )

    def exceeded(self) -> list[str]:
        """Return the limits that it exceeds, in words."""
        measured = {
            "resources": (self.resources, RESOURCES),
            "outputs": (self.outputs, OUTPUTS),
            "bytes of template": (self.template_bytes, TEMPLATE_BYTES),
            "bytes of event to a custom resource": (self.largest_update_event_bytes, EVENT_BYTES),
            "bytes of a function's variables": (self.largest_variables_bytes, VARIABLES_BYTES),
            "bytes of a role's policies": (self.largest_policies_bytes, POLICY_BYTES),
        }
        return [
            f"{value} {what}, at most {maximum}"
            for what, (value, maximum) in measured.items()
            if value > maximum
        ]


def _of(template: dict[str, Any], resource_type: str) -> list[dict[str, Any]]:
    """Return the properties of the resources of a type."""
    return [each["Properties"] for each in template["Resources"].values() if each["Type"] == resource_type]


def _variables(function: dict[str, Any]) -> int:
    """Return the bytes of a function's variables."""
    variables = function.get("Environment", {}).get("Variables", {})
    return sum(len(name) + _length(value) for name, value in variables.items())


def _policies(template: dict[str, Any]) -> Counter[str]:
    """Return the bytes of the policies of each role."""
    bytes_by_role: Counter[str] = Counter()
    for policy in _of(template, "AWS::IAM::Policy"):
        for role in policy.get("Roles", []):
            bytes_by_role[text(role)] += _length(policy["PolicyDocument"])
    return bytes_by_role


def _length(value: Any) -> int:
    """Return the bytes of a value as it is deployed."""
    return len(_REFERENCE.sub("x" * _REFERENCE_BYTES, _resolved(value)))


def _resolved(value: Any) -> str:
    """Spell a value with every reference in it, however deep."""
    match value:
        case {"Fn::Join": _} | {"Fn::Sub": _} | {"Fn::GetAtt": _} | {"Ref": _} | {"Fn::GetStackOutput": _}:
            return text(value)
        case dict():
            return "{" + ",".join(f'"{name}":{_resolved(each)}' for name, each in value.items()) + "}"
        case list():
            return "[" + ",".join(map(_resolved, value)) + "]"
        case str():
            return value
    return json.dumps(value)


def sizes(templates: Templates) -> dict[str, Size]:
    """Return each stack's size."""
    return {
        name: Size.of(template, next(templates.directory.glob(f"*-{name}.template.json")).stat().st_size)
        for name, template in templates.by_stack.items()
    }


def exceeded_limits(templates: Templates) -> list[str]:
    """Return the limits that some stack exceeds, a line each."""
    return [f"{name}: {line}" for name, size in sizes(templates).items() for line in size.exceeded()]
