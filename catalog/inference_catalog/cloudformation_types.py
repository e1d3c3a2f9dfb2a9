"""What CloudFormation cannot change in a resource, and what names it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from inference_contracts.records import dataclass

_FILE = Path(__file__).parent / "data" / "cloudformation_types.json"


@dataclass(frozen=True, slots=True)
class CloudFormationType:
    """A resource type."""

    create_only: tuple[str, ...]
    """Properties that cannot change: CloudFormation makes another resource, and deletes the old one. A dot
    separates the names of a nested property."""
    names: tuple[str, ...]
    """Properties whose values together belong to one resource of the account and region only. Empty if AWS
    chooses the name."""

    def replaced_by(self, old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
        """Return the properties that cannot change and that differ."""
        return [path for path in self.create_only if value_at(old, path) != value_at(new, path)]


@cache
def cloudformation_types() -> Mapping[str, CloudFormationType]:
    """Return the known types by name. The file names its source."""
    types = json.loads(_FILE.read_text(encoding="utf-8"))["types"]
    return {
        name: CloudFormationType(tuple(entry["createOnly"]), tuple(entry["names"]))
        for name, entry in types.items()
    }


def value_at(properties: Mapping[str, Any], path: str) -> Any:
    """Return the value of a nested property; None if it is not there."""
    value: Any = properties
    for part in path.split("."):
        if not isinstance(value, Mapping):
            return None
        value = value.get(part)
    return value
