"""Record JSON Schemas of the custom resources that the library writes, from their projects.

Writes ``local/inference_local/kubernetes_schemas/<group>_<version>_<Kind>.json``, and a definition of
InferencePool in our charts, because no third-party chart contains it. Run it again after a change of a
version in ``local/inference_local/control_plane/artefacts.py``. It needs ``go``, which downloads
modules from the Go module proxy and checks their checksums:

    .venv/bin/python scripts/record_kubernetes_schemas.py

Unknown fields become errors. Rules in CEL (``x-kubernetes-validations``), defaults and formats are left out:
only an API server checks them. Definitions that no module proxy has (Dynamo's operator, the Secrets Store CSI
driver) are written by hand in the same folder and are not changed.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from inference_local.control_plane import artefacts

TARGET = Path(__file__).resolve().parents[1] / "local/inference_local/kubernetes_schemas"
DEFINITION_CHART = Path(__file__).resolve().parents[1] / "charts/inference-pool-crd/templates"
KARPENTER = "github.com/aws/karpenter-provider-aws"
KEDA = "github.com/kedacore/keda/v2"
KUEUE = "sigs.k8s.io/kueue"
LOAD_BALANCER_CONTROLLER = "github.com/kubernetes-sigs/aws-load-balancer-controller"

METADATA: Mapping[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["name"],
    "properties": {
        "name": {"type": "string", "pattern": "^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$", "maxLength": 253},
        "namespace": {"type": "string"},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "annotations": {"type": "object", "additionalProperties": {"type": "string"}},
    },
}
#: Words of JSON Schema that bound a value and hold no schema themselves.
BOUNDS_OF_VALUES = (
    "enum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "pattern",
    "required",
    "type",
    "uniqueItems",
)


@dataclass(frozen=True)
class Source:
    """A custom resource definition in a Go module."""

    module: str
    version: str
    """`module`, `version`: The module at its version."""
    path: str
    """The definition's file in it."""
    licence: str
    """SPDX identifier of the module's licence."""


INFERENCE_POOL = Source(
    "sigs.k8s.io/gateway-api-inference-extension",
    artefacts.INFERENCE_EXTENSION_VERSION,
    "config/crd/bases/inference.networking.k8s.io_inferencepools.yaml",
    "Apache-2.0",
)
SOURCES = (
    Source(KARPENTER, artefacts.KARPENTER_VERSION, "pkg/apis/crds/karpenter.sh_nodepools.yaml", "Apache-2.0"),
    Source(
        KARPENTER,
        artefacts.KARPENTER_VERSION,
        "pkg/apis/crds/karpenter.k8s.aws_ec2nodeclasses.yaml",
        "Apache-2.0",
    ),
    *(
        Source(
            KUEUE,
            artefacts.KUEUE_VERSION,
            f"config/components/crd/bases/kueue.x-k8s.io_{plural}.yaml",
            "Apache-2.0",
        )
        for plural in ("resourceflavors", "clusterqueues", "localqueues")
    ),
    INFERENCE_POOL,
    Source(
        "sigs.k8s.io/lws",
        artefacts.LWS_VERSION,
        "config/crd/bases/leaderworkerset.x-k8s.io_leaderworkersets.yaml",
        "Apache-2.0",
    ),
    *(
        Source(KEDA, artefacts.KEDA_VERSION, f"config/crd/bases/keda.sh_{plural}.yaml", "Apache-2.0")
        for plural in ("scaledobjects", "triggerauthentications")
    ),
    Source(
        LOAD_BALANCER_CONTROLLER,
        artefacts.LOAD_BALANCER_CONTROLLER_VERSION,
        "config/crd/bases/elbv2.k8s.aws_targetgroupbindings.yaml",
        "Apache-2.0",
    ),
)


def main() -> int:
    """Write every schema."""
    for source in SOURCES:
        definition = yaml.safe_load((module_directory(source) / source.path).read_text(encoding="utf-8"))
        if source is INFERENCE_POOL:
            write_definition(definition, source)
        group, kind = definition["spec"]["group"], definition["spec"]["names"]["kind"]
        for version in definition["spec"]["versions"]:
            if version["storage"]:
                file = TARGET / f"{group}_{version['name']}_{kind}.json"
                schema = manifest_schema(group, version, kind, source)
                file.write_text(json.dumps(schema, indent=1) + "\n", encoding="utf-8")
                print(f"{file.name}: {file.stat().st_size} bytes")
    return 0


def write_definition(definition: dict[str, Any], source: Source) -> None:
    """Write a definition as a chart's template.

    It stays when its release is removed. Otherwise, every object of the kind would be removed too, also those
    of
    other releases.
    """
    definition["metadata"]["annotations"]["helm.sh/resource-policy"] = "keep"
    text = yaml.safe_dump(definition, sort_keys=False, width=110)
    if "{{" in text:
        sys.exit(f"{source.path} contains text that Helm would treat as a template")
    head = f"# From {source.path} of {source.module} {source.version} ({source.licence}), by\n"
    head += "# scripts/record_kubernetes_schemas.py; only `helm.sh/resource-policy` is ours.\n"
    (DEFINITION_CHART / "inferencepools.yaml").write_text(head + text, encoding="utf-8")


def module_directory(source: Source) -> Path:
    """Download a module, check its checksum, and return its folder."""
    with tempfile.TemporaryDirectory() as empty:
        result = subprocess.run(
            [shutil.which("go") or "go", "mod", "download", "-json", f"{source.module}@{source.version}"],
            cwd=empty,
            env={**os.environ, "GOFLAGS": "-mod=mod"},
            capture_output=True,
            text=True,
            check=True,
        )
    return Path(json.loads(result.stdout)["Dir"])


def manifest_schema(group: str, version: Mapping[str, Any], kind: str, source: Source) -> dict[str, Any]:
    """Return the JSON Schema of a manifest, without status."""
    spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$comment": f"From {source.path} of {source.module} {source.version} ({source.licence}), by "
        "scripts/record_kubernetes_schemas.py. Unknown fields are errors; rules in CEL are not checked.",
        "type": "object",
        "additionalProperties": False,
        "required": ["apiVersion", "kind", "metadata", "spec"],
        "properties": {
            "apiVersion": {"const": f"{group}/{version['name']}"},
            "kind": {"const": kind},
            "metadata": dict(METADATA),
            "spec": convert(spec),
        },
    }


def convert(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Turn an OpenAPI v3 schema of Kubernetes into JSON Schema that rejects unknown fields."""
    converted = {key: schema[key] for key in BOUNDS_OF_VALUES if key in schema}
    if schema.get("x-kubernetes-int-or-string"):
        converted["type"] = ["integer", "string"]
    if schema.get("nullable"):
        converted["type"] = [converted["type"], "null"]
    if "items" in schema:
        converted["items"] = convert(schema["items"])
    if "properties" in schema:
        converted["properties"] = {name: convert(child) for name, child in schema["properties"].items()}
    additional = schema.get("additionalProperties")
    if isinstance(additional, Mapping):
        converted["additionalProperties"] = convert(additional)
    elif "properties" in schema and not schema.get("x-kubernetes-preserve-unknown-fields"):
        converted["additionalProperties"] = False
    return converted


if __name__ == "__main__":
    sys.exit(main())
