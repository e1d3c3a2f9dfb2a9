"""Validates Kubernetes manifests without an API server, but as strictly as one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
from kubernetes_validate import utils as kubernetes_validate

from inference_contracts.errors import UserError

SCHEMA_DIRECTORY = Path(__file__).parent / "kubernetes_schemas"
_BUILT_IN_DOMAIN = ".k8s.io"


def validate_manifest(manifest: Mapping[str, Any], kubernetes_version: str) -> list[str]:
    """Check one object against the schema of its kind; unknown kinds and unknown fields are errors.

    Built-in kinds are checked by ``kubernetes-validate`` (strict), kinds of custom resource definitions
    against ``kubernetes_schemas/<group>_<version>_<Kind>.json`` (JSON Schema, draft 2020-12).

    manifest: The object, parsed from YAML or JSON.
    kubernetes_version: Version of the cluster, such as ``1.35``.
    Returns: Errors, each with kind, name and path of the field. Empty if the object is valid.
    Raises UserError if there are no schemas for this Kubernetes version.
    """
    missing = [key for key in ("apiVersion", "kind", "metadata") if not manifest.get(key)]
    if missing:
        return [f"object without {', '.join(missing)}: {json.dumps(manifest)[:200]}"]
    subject = f"{manifest['kind']} {manifest['metadata'].get('name', '(no name)')}"
    schema = _custom_schema(manifest["apiVersion"], manifest["kind"])
    if schema is not None:
        validator = jsonschema.Draft202012Validator(schema)
        return [f"{subject}: {error.json_path}: {error.message}" for error in validator.iter_errors(manifest)]
    if not _is_built_in(manifest["apiVersion"]):
        return [_unknown_kind(subject, manifest)]
    try:
        kubernetes_validate.validate(dict(manifest), kubernetes_version, strict=True)
    except kubernetes_validate.ValidationError as error:
        return [f"{subject}: {error.json_path}: {error.message}"]
    except kubernetes_validate.SchemaNotFoundError:
        return [_unknown_kind(subject, manifest)]
    except kubernetes_validate.VersionNotSupportedError as error:
        known = ", ".join(kubernetes_validate.all_versions())
        raise UserError(
            f"there are no schemas for Kubernetes {kubernetes_version}; known versions are {known}"
        ) from error
    return []


@cache
def _custom_schema(api_version: str, kind: str) -> dict[str, Any] | None:
    file = _schema_file(api_version, kind)
    if not file.is_file():
        return None
    schema: dict[str, Any] = json.loads(file.read_text())
    return schema


def _is_built_in(api_version: str) -> bool:
    """Return whether a group is built in. kubernetes-validate looks only at the first label of a group."""
    group, _, _ = api_version.rpartition("/")
    return "." not in group or group.endswith(_BUILT_IN_DOMAIN)


def _unknown_kind(subject: str, manifest: Mapping[str, Any]) -> str:
    api_version, kind = manifest["apiVersion"], manifest["kind"]
    return (
        f"{subject}: no schema for kind {kind} of {api_version}; correct it, or add "
        f"{_schema_file(api_version, kind).name} to {SCHEMA_DIRECTORY.name}"
    )


def _schema_file(api_version: str, kind: str) -> Path:
    return SCHEMA_DIRECTORY / f"{api_version.replace('/', '_')}_{kind}.json"
