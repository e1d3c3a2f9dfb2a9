"""Every Kubernetes object that a synthesised platform would create, with made-up names of AWS resources."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

from inference_blueprints import tools
from inference_local.control_plane import artefacts, build
from inference_local.emulator.kubernetes import render
from inference_local.emulator.real_kubernetes.registry_charts import MODULE_CHARTS
from tests.templates.support import Templates

KubernetesObject = dict[str, Any]

KUBERNETES_VERSION = "1.35"
#: What stands for a resource in a manifest; a type that is not named here is an error.
IDENTIFIERS: Mapping[str, str] = {
    "AWS::EC2::Subnet": "subnet-{hash:017x}",
    "AWS::EC2::VPC": "vpc-{hash:017x}",
    "AWS::EC2::SecurityGroup": "sg-{hash:017x}",
    "AWS::EKS::Cluster": "sg-{hash:017x}",
    "AWS::ElasticLoadBalancingV2::TargetGroup": (
        "arn:aws:elasticloadbalancing:us-west-2:111122223333:targetgroup/{name}/{hash:016x}"
    ),
    "AWS::DynamoDB::GlobalTable": "table-{hash:x}",
    "AWS::ECR::Repository": "repository-{hash:x}",
    "AWS::IAM::Role": "role-{name}",
    "AWS::SQS::Queue": "queue-{name}",
    "AWS::S3::Bucket": "bucket-{hash:x}",
    "AWS::ElastiCache::ServerlessCache": "cache-{hash:x}",
    "AWS::KinesisFirehose::DeliveryStream": "stream-{hash:x}",
    "AWS::SecretsManager::Secret": "arn:aws:secretsmanager:us-west-2:111122223333:secret:{name}-AbCdEf",
}
#: What stands for a resource's ARN, where that is not the same.
ARNS: Mapping[str, str] = {
    "AWS::ECR::Repository": "arn:aws:ecr:us-west-2:111122223333:repository/repository-{hash:x}",
}


def manifests(templates: Templates, identifiers: Mapping[str, str] = IDENTIFIERS) -> list[KubernetesObject]:
    """The objects that stacks apply themselves, in the templates' order."""
    return [
        kubernetes_object
        for stack, properties in _properties(templates, "Custom::AWSCDK-EKS-KubernetesResource")
        for kubernetes_object in json.loads(_text(templates, stack, properties["Manifest"], identifiers))
    ]


def releases(templates: Templates) -> dict[str, dict[str, Any]]:
    """Each Helm release with its values, by name."""
    found = {}
    for stack, properties in _properties(templates, "Custom::AWSCDK-EKS-HelmChart"):
        values = json.loads(_text(templates, stack, properties.get("Values", "{}"), IDENTIFIERS))
        found[properties["Release"]] = {**properties, "Values": values}
    return found


def rendered(release: Mapping[str, Any], chart: Path) -> list[KubernetesObject]:
    """The objects of a release, each with its namespace."""
    namespace = release.get("Namespace", "default")
    objects = render(
        tools.helm(),
        chart,
        release=release["Release"],
        namespace=namespace,
        values=release["Values"],
        kubernetes_version=KUBERNETES_VERSION,
    )
    for kubernetes_object in objects:
        kubernetes_object["metadata"].setdefault("namespace", namespace)
    return objects


def module_chart(name: str) -> Path:
    """Folder of another project's chart, out of its Go module."""
    files, folder = MODULE_CHARTS[name]
    row = next(row for row in artefacts.CHARTS if row.name == files)
    return build.module_files(row, print) / folder


@cache
def own_objects(templates: Templates) -> list[KubernetesObject]:
    """The objects of the releases of our own charts; not to be changed."""
    ours = releases(templates)
    return [
        kubernetes_object
        for release, chart in _charts(templates)
        for kubernetes_object in rendered(ours[release], chart)
    ]


def component_deployments(objects: list[KubernetesObject]) -> list[KubernetesObject]:
    """The Deployments of every process: what Dynamo's operator makes of graphs, and those of charts.

    Only what placement depends on: replicas and the pod template
    (ai-dynamo/dynamo, deploy/operator/internal/dynamo/graph.go).
    """
    return [
        *(
            _deployment(
                graph, f"{graph['metadata']['name']}-{component['name']}", component, component["podTemplate"]
            )
            for graph in objects
            if graph["kind"] == "DynamoGraphDeployment"
            for component in graph["spec"]["components"]
        ),
        *(
            _deployment(each, each["metadata"]["name"], each["spec"], _unnamed(each["spec"]["template"]))
            for each in objects
            if each["kind"] == "Deployment"
        ),
    ]


def _unnamed(template: KubernetesObject) -> KubernetesObject:
    """The pod template without its service account, which another namespace does not have."""
    spec = {key: value for key, value in template["spec"].items() if key != "serviceAccountName"}
    return {**template, "spec": spec}


def _deployment(
    owner: KubernetesObject, name: str, scale: Mapping[str, Any], template: KubernetesObject
) -> KubernetesObject:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": owner["metadata"]["namespace"]},
        "spec": {
            # Where KEDA says it, as many as the server makes of nothing: nobody scales here.
            "replicas": scale.get("replicas", 1),
            "selector": {"matchLabels": template["metadata"]["labels"]},
            "template": template,
        },
    }


def _charts(templates: Templates) -> Iterator[tuple[str, Path]]:
    """Releases of charts that are deployed as assets, each with the chart's folder."""
    for path in sorted(templates.directory.glob("*.assets.json")):
        assets = json.loads(path.read_text())["files"]
        template = json.loads(path.with_name(path.name.replace(".assets.", ".template.")).read_text())
        for resource in template["Resources"].values():
            match resource["Properties"]:
                case {"Release": release, "ChartAssetURL": {"Fn::Sub": address}}:
                    yield release, templates.directory / assets[PurePosixPath(address).stem]["source"]["path"]


def _properties(templates: Templates, resource_type: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for stack, template in templates.by_stack.items():
        for resource in template["Resources"].values():
            if resource["Type"] == resource_type:
                yield stack, resource["Properties"]


def _text(templates: Templates, stack: str, value: Any, identifiers: Mapping[str, str]) -> str:
    """Spell a template's value with a name for every resource, across stacks."""
    match value:
        case str():
            return value
        case {"Fn::Join": [separator, parts]}:
            return str(separator).join(_text(templates, stack, part, identifiers) for part in parts)
        case {"Fn::GetStackOutput": {"StackName": name, "OutputName": output}}:
            other = name.split("-", 1)[1]
            return _text(templates, other, templates.by_stack[other]["Outputs"][output]["Value"], identifiers)
        case {"Fn::Select": [int() as place, {"Fn::Split": [separator, whole]}]}:
            return _text(templates, stack, whole, identifiers).split(separator)[place]
        case {"Ref": "AWS::URLSuffix"}:
            return "amazonaws.com"
        case {"Ref": name} | {"Fn::GetAtt": [name, _]}:
            kind = templates.by_stack[stack]["Resources"][name]["Type"]
            arn = ARNS.get(kind) if value.get("Fn::GetAtt", [])[1:] == ["Arn"] else None
            pattern = arn or identifiers[kind]
            return pattern.format(name=name[:20], hash=zlib.crc32(name.encode()))
    raise AssertionError(f"{stack}: {value} has no name here")
