"""Lets ``Ref`` of a secret be its ARN.

ministack returns its name, which a task definition cannot name with a key. Source: CloudFormation Template
Reference, AWS::SecretsManager::Secret, "Return values": "the Ref intrinsic function returns the ARN of the
secret".
"""

from collections.abc import Mapping
from typing import Any

from ministack.services import secretsmanager
from ministack.services.cloudformation.provisioners import _RESOURCE_HANDLERS

_PLAIN = dict(_RESOURCE_HANDLERS["AWS::SecretsManager::Secret"])
_Made = tuple[str, Mapping[str, str]]


def _name(arn: str) -> str:
    """Return the name of a secret by its ARN, or the text if there is none."""
    name, _ = secretsmanager._resolve(arn)
    return str(name or arn)


def _create(logical_id: str, properties: Mapping[str, Any], stack: str) -> _Made:
    _, attributes = _PLAIN["create"](logical_id, properties, stack)
    return attributes["Arn"], attributes


def _update(
    arn: str, old: Mapping[str, Any], new: Mapping[str, Any], stack: str, logical_id: str | None = None
) -> _Made:
    _, attributes = _PLAIN["update"](_name(arn), old, new, stack, logical_id)
    return attributes["Arn"], attributes


def _delete(arn: str, properties: Mapping[str, Any]) -> None:
    _PLAIN["delete"](_name(arn), properties)


def apply() -> None:
    """Apply the patch."""
    _RESOURCE_HANDLERS["AWS::SecretsManager::Secret"] |= {
        "create": _create,
        "update": _update,
        "delete": _delete,
    }
