"""The custom resource definitions that the platform's manifests need."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from inference_blueprints.operate.kubernetes import Kubectl
from inference_blueprints.single_build import Report
from inference_local.control_plane import artefacts, build
from inference_local.manifests import SCHEMA_DIRECTORY

Definition = dict[str, Any]

#: Kinds whose definitions are in no Go module. They are generated from our strict schemas.
GENERATED_KINDS = {
    "nvidia.com_v1beta1_DynamoGraphDeployment": "dynamographdeployments",
    "nvidia.com_v1beta1_DynamoGraphDeploymentScalingAdapter": "dynamographdeploymentscalingadapters",
    "secrets-store.csi.x-k8s.io_v1_SecretProviderClass": "secretproviderclasses",
}
#: Those with a subresource ``scale``, as upstream's definition has it
#: (ai-dynamo/dynamo, deploy/operator/config/crd/bases/nvidia.com_dynamographdeploymentscalingadapters.yaml).
_SCALED_KINDS = {"DynamoGraphDeploymentScalingAdapter"}
_SCALE = {
    "status": {},
    "scale": {
        "specReplicasPath": ".spec.replicas",
        "statusReplicasPath": ".status.replicas",
        "labelSelectorPath": ".status.selector",
    },
}
_STATUS = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
#: Lists in those whose items have a key, by the name of the list. Each field of an item has its own owner
#: (ai-dynamo/dynamo, deploy/operator/api/v1beta1/dynamographdeployment_types.go: ``+listType=map``).
_KEYED_LISTS = {"components": "name"}
# Keywords that a structural schema does not have, or that the server checks itself.
_UNSTRUCTURAL = ("const", "contains")


def definitions(report: Report) -> list[Definition]:
    """Return every custom resource definition: from Go modules, or generated.

    report: Receives a line for every set of files that is found in the cache or copied.
    """
    upstream = [
        document
        for row in artefacts.CUSTOM_RESOURCES
        for document in _documents(build.module_files(row, report))
    ]
    return [*upstream, *(_generated(name, plural) for name, plural in GENERATED_KINDS.items())]


def install(kubectl: Kubectl, report: Report) -> None:
    """Apply every definition and wait until the server serves the kinds.

    kubectl: A client that may create definitions.
    """
    kubectl.apply(definitions(report))
    # One list per poll: `kubectl wait` takes seconds for so many objects.
    kubectl.wait_until(
        lambda: all(_is_established(item) for item in kubectl.get("customresourcedefinitions")),
        "custom resource definitions are established",
    )


def _documents(folder: Path) -> Iterator[Definition]:
    for path in sorted(folder.rglob("*.yaml")):
        for document in yaml.load_all(path.read_text(), yaml.CSafeLoader):
            if document and document["kind"] == "CustomResourceDefinition":
                yield document


def _is_established(definition: Definition) -> bool:
    conditions = definition.get("status", {}).get("conditions") or []
    return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)


def _generated(name: str, plural: str) -> Definition:
    group, version, kind = name.split("_")
    schema = json.loads((SCHEMA_DIRECTORY / f"{name}.json").read_text())
    properties = {"spec": _structural(schema["properties"]["spec"], schema)}
    scaled: dict[str, Any] = {}
    if kind in _SCALED_KINDS:
        properties["status"] = _STATUS
        scaled["subresources"] = _SCALE
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural, "singular": kind.lower(), "listKind": f"{kind}List"},
            "versions": [
                {
                    "name": version,
                    "served": True,
                    "storage": True,
                    "schema": {
                        "openAPIV3Schema": {
                            "type": "object",
                            "required": ["spec"],
                            "properties": properties,
                        }
                    },
                    **scaled,
                }
            ],
        },
    }


def _structural(schema: Mapping[str, Any], whole: Mapping[str, Any]) -> dict[str, Any]:
    """Translate a JSON Schema to the structural schema that a definition requires.

    References are resolved, a constant becomes an enumeration with one value, and objects without properties
    keep all fields. The server rejects unknown fields elsewhere (strict validation).
    """
    if "$ref" in schema:
        name = schema["$ref"].removeprefix("#/$defs/")
        return _structural(
            {**whole["$defs"][name], **{k: v for k, v in schema.items() if k != "$ref"}}, whole
        )
    structural = {key: value for key, value in schema.items() if key not in _UNSTRUCTURAL}
    if "const" in schema:
        structural["enum"] = [schema["const"]]
    if "enum" in structural:
        structural.setdefault("type", "string")
    if schema.get("type") == ["integer", "string"]:
        del structural["type"]
        structural["x-kubernetes-int-or-string"] = True
    if isinstance(schema.get("additionalProperties"), Mapping):
        structural["additionalProperties"] = _structural(schema["additionalProperties"], whole)
    else:
        structural.pop("additionalProperties", None)
    if "properties" in schema:
        structural["properties"] = {
            name: _structural(value, whole) | _keyed(name) for name, value in schema["properties"].items()
        }
    elif structural.get("type") == "object" and "additionalProperties" not in structural:
        structural["x-kubernetes-preserve-unknown-fields"] = True
    if "items" in schema:
        structural["items"] = _structural(schema["items"], whole)
    return structural


def _keyed(name: str) -> dict[str, Any]:
    if name not in _KEYED_LISTS:
        return {}
    return {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [_KEYED_LISTS[name]]}
