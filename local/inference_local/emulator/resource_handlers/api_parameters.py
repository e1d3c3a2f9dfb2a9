"""Properties of CloudFormation as parameters of a call, by botocore's model.

The names are the same but for capital letters, and those of maps are unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import botocore.session
from botocore.model import ListShape, MapShape, Shape, StructureShape

_SCALARS: Mapping[str, Callable[[Any], Any]] = {
    "integer": int,
    "long": int,
    "double": float,
    "boolean": lambda value: str(value).lower() == "true",
    "string": str,
}


def api_parameters(service: str, operation: str, properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return properties of CloudFormation as parameters of a call. Names that the call lacks are left out."""
    shape = botocore.session.get_session().get_service_model(service).operation_model(operation).input_shape
    converted: dict[str, Any] = _converted(shape, properties)
    return converted


def _converted(shape: Shape, value: Any) -> Any:
    if isinstance(shape, StructureShape):
        # Capital letters differ by more than the first: "EFSVolumeConfiguration", "FilesystemId" and "IAM"
        # are "efsVolumeConfiguration", "fileSystemId" and "iam".
        members = {name.lower(): name for name in shape.members}
        return {
            members[name.lower()]: _converted(shape.members[members[name.lower()]], each)
            for name, each in value.items()
            if name.lower() in members
        }
    if isinstance(shape, ListShape):
        return [_converted(shape.member, each) for each in value]
    if isinstance(shape, MapShape):
        if isinstance(value, list):  # tags of a template are a list, those of some calls a map
            return {each["Key"]: str(each["Value"]) for each in value}
        return {name: str(each) for name, each in value.items()}
    convert = _SCALARS.get(shape.type_name)
    return convert(value) if convert else value
