"""Record which properties of CloudFormation's resource types cannot change, and which ones name a resource.

Writes ``catalog/inference_catalog/data/cloudformation_types.json``, and the bounds of all properties for the
emulator in ``local/inference_local/emulator/resource_schemas.json``, from the resource provider schemas that
cfn-lint ships (``createOnlyProperties``, ``primaryIdentifier`` and ``readOnlyProperties`` of
https://docs.aws.amazon.com/cloudformation-cli/latest/userguide/resource-type-schema.html). It has the types
of the recorded templates, and those of recorded releases. Run it again after a change of cfn-lint, or when a
stack has a new type:

    PYTHONPATH=. .venv/bin/python scripts/record_cloudformation_types.py
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import cfnlint
from record_kubernetes_schemas import BOUNDS_OF_VALUES

from tests.releases.recorded_releases import recorded_releases

ROOT = Path(__file__).resolve().parents[1]
TARGET = ROOT / "catalog/inference_catalog/data/cloudformation_types.json"
BOUNDS = ROOT / "local/inference_local/emulator/resource_schemas.json"
SCHEMAS = Path(cfnlint.__file__).parent / "data/schemas"
REGION = "us-east-1"
#: What a schema says about values. The rest describes, or is of cfn-lint.
KEYWORDS = frozenset(
    (
        *BOUNDS_OF_VALUES,
        *("$ref", "additionalProperties", "allOf", "anyOf", "const", "definitions", "dependencies", "else"),
        *("if", "items", "not", "oneOf", "patternProperties", "properties", "then"),
    )
)
#: Keywords whose values are schemas by name.
NAMED = ("definitions", "dependencies", "patternProperties", "properties")
#: Properties that together may exist only once, where the schema's identifier is chosen by AWS.
IDENTITIES = {
    # EKS API Reference, CreatePodIdentityAssociation: one association for a service account.
    "AWS::EKS::PodIdentityAssociation": ["ClusterName", "Namespace", "ServiceAccount"],
    "AWS::EKS::Nodegroup": ["ClusterName", "NodegroupName"],
    "AWS::MSK::Topic": ["ClusterArn", "TopicName"],
    "AWS::ECS::Service": ["Cluster", "ServiceName"],
    "AWS::EC2::SecurityGroup": ["GroupName", "VpcId"],
    # A family has many revisions (ECS API Reference, RegisterTaskDefinition).
    "AWS::ECS::TaskDefinition": [],
    "AWS::Lambda::LayerVersion": [],
}


def main() -> None:
    """Write the file."""
    schemas = json.loads((SCHEMAS / f"providers/{REGION}.json").read_text("utf-8"))
    types, bounds = {}, {}
    for name in sorted(set(_recorded_types())):
        [file] = (SCHEMAS / "resources").glob(f"{schemas[name]}*")
        schema = json.loads(file.read_text("utf-8"))
        types[name], bounds[name] = _entry(name, schema), _bounds(schema)
    document = {
        "source": f"resource provider schemas of {REGION} in cfn-lint {version('cfn-lint')}",
        "date": datetime.now(UTC).date().isoformat(),
    }
    TARGET.write_text(json.dumps({**document, "types": types}, indent=2) + "\n", "utf-8")
    lines = ",\n".join(f'"{name}": {json.dumps(each)}' for name, each in bounds.items())
    head = "".join(f'"{key}": {json.dumps(value)},\n' for key, value in document.items())
    BOUNDS.write_text(f'{{{head}"types": {{\n{lines}\n}}}}\n', "utf-8")
    print(f"wrote {len(types)} types to {TARGET.relative_to(ROOT)}")


def _bounds(schema: Any) -> Any:
    """Return what a schema says about values."""
    if isinstance(schema, list):
        return [_bounds(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: {name: _bounds(each) for name, each in value.items()} if key in NAMED else _bounds(value)
        for key, value in schema.items()
        if key in KEYWORDS
    }


def _entry(name: str, schema: dict[str, Any]) -> dict[str, list[str]]:
    read_only = set(_paths(schema, "readOnlyProperties"))
    create_only = sorted(set(_paths(schema, "createOnlyProperties")) - read_only)
    identifier = list(_paths(schema, "primaryIdentifier"))
    kind = name.rpartition(":")[2]
    if name in IDENTITIES:
        names = IDENTITIES[name]
    elif read_only & set(identifier):
        # AWS chooses the identifier, such as an ARN. A name is a property that cannot change.
        names = [each for each in create_only if each in ("Name", f"{kind}Name")]
    else:
        names = identifier
    return {"createOnly": create_only, "names": names}


def _paths(schema: dict[str, Any], key: str) -> Iterator[str]:
    for pointer in schema.get(key, ()):
        yield pointer.removeprefix("/properties/").replace("/", ".")


def _recorded_types() -> Iterator[str]:
    for file in sorted((ROOT / "tests/templates/recorded").glob("*.json")):
        for template in json.loads(file.read_text("utf-8")).values():
            yield from _types(template)
    for release in recorded_releases():
        for blueprint in release.blueprints:
            for template in release.templates(blueprint).values():
                yield from _types(template)


def _types(template: dict[str, Any]) -> Iterator[str]:
    for resource in template["Resources"].values():
        if resource["Type"].startswith("AWS::") and resource["Type"] != "AWS::CDK::Metadata":
            yield resource["Type"]


if __name__ == "__main__":
    main()
