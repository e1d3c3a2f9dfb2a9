"""What AWS would refuse in a template for the properties of a resource alone: the table of refusals."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from inference_local.emulator.request_refusals import refusals
from tests.templates.support import Templates, text

#: Rows about what exists in the account, which a template does not say.
_OF_THE_ACCOUNT: Final = frozenset(["CACHE_USER_GROUP", "GROUP_USER"])
_SPELLED: Final = frozenset(["Ref", "Fn::Join", "Fn::Sub", "Fn::GetAtt", "Fn::GetStackOutput"])
_OTHERS: Final = re.compile(r"Fn::\w+")
_NAMES: Final = {"AWS::Partition": "aws", "AWS::Region": "us-west-2", "AWS::AccountId": "123456789012"}
_REFERENCE: Final = re.compile(r"\$\{([^}]*)\}")
_NO_NAME: Final = re.compile(r"[^a-zA-Z0-9]+")


def refused_by_aws(templates: Templates) -> list[str]:
    """Return the resources that a row of the table refuses, a line each."""
    return [
        f"{stack}: {name}: {line}"
        for stack, template in templates.by_stack.items()
        for name, resource in template["Resources"].items()
        for line in _refused(resource["Type"], _Deployed(template).value(resource.get("Properties", {})))
    ]


def _refused(resource_type: str, properties: Mapping[str, Any]) -> Iterator[str]:
    for name, row in refusals().items():
        if row.check is None or resource_type not in row.call.split(", ") or name in _OF_THE_ACCOUNT:
            continue
        found = row.check(properties)
        if found is not None:
            yield str(row.error(**found))


class _Deployed:
    """Values of a template as they are deployed, with names in the place of references.

    What an expression gives that only CloudFormation computes is left out.
    """

    def __init__(self, template: Mapping[str, Any]) -> None:
        self._resources = template["Resources"]

    def value(self, value: Any) -> Any:
        if isinstance(value, list):
            return [each for each in map(self.value, value) if each is not None]
        if not isinstance(value, dict):
            return value
        if len(value) == 1 and next(iter(value)) in _SPELLED:
            return _REFERENCE.sub(lambda match: self._name(match[1]), text(value))
        if len(value) == 1 and _OTHERS.fullmatch(next(iter(value))):
            return None
        found = ((name, self.value(each)) for name, each in value.items())
        return {name: each for name, each in found if each is not None}

    def _name(self, reference: str) -> str:
        """Return what a reference to a resource and an attribute may give."""
        resource, _, attribute = reference.partition(".")
        if reference in _NAMES or not attribute.endswith("Arn"):
            return _NAMES.get(reference, _NO_NAME.sub("-", reference).strip("-").lower())
        kind = self._resources.get(resource, {}).get("Type", "AWS::Any::Thing")
        if kind == "AWS::S3::Bucket":
            return f"arn:aws:s3:::{resource.lower()}"
        end = ":*" if kind == "AWS::Logs::LogGroup" else ""
        return f"arn:aws:{kind.split('::')[1].lower()}:us-west-2:123456789012:{resource}{end}"
