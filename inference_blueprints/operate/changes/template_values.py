"""Values of a template: references, and texts with references in them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

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
