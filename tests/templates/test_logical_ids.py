"""Logical ids of the protected stacks: CloudFormation deletes what is called differently, and makes it anew.

``golden/logical_ids.json`` holds those of the base document. ``golden/stateful_ids.json`` holds those of all
stateful resources of every shipped blueprint. A line may go only with a plan for what it stood for.
With the blueprints of `shipped_name` that have `pytest.mark.thorough`, they belong to that suite.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from inference_blueprints.spec.source import shipped
from tests.templates.conftest import Synthesise
from tests.templates.support import Templates

_FOLDER = Path(__file__).parent / "golden"
GOLDEN = json.loads((_FOLDER / "logical_ids.json").read_text(encoding="utf-8"))
STATEFUL_IDS = json.loads((_FOLDER / "stateful_ids.json").read_text(encoding="utf-8"))

#: What is lost with a resource of a type, where that is more than an interruption.
LOSSES = {
    "AWS::EKS::Cluster": "the cluster with every model; its name is taken, so a new one cannot even start",
    "AWS::EKS::Nodegroup": "the nodes under Karpenter and the operators, which stop until others have joined",
    "AWS::EKS::AccessEntry": "the right of nodes to join and of deployments to go on, until it is made again",
    "AWS::EKS::Addon": "networking or names for every pod until the add-on is installed again",
    "AWS::IAM::Role": "the rights of running nodes and controllers, under the old role's name",
    "AWS::KMS::Key": "whatever it encrypts: Kubernetes' secrets and the weights cannot be read again",
    "AWS::S3::Bucket": "the bucket's objects, or with `dataRemoval: retain` the platform's hold on them",
    "AWS::SQS::Queue": "warnings of interruptions while Karpenter still reads the old queue",
}
#: Types of which nothing may be made that these files do not hold, with what the old one keeps. Those that
#: cfn-lint calls stateful (cfnlint/data/AdditionalSpecs/StatefulResources.json) are among them.
STATEFUL = {
    "AWS::ApiGateway::RestApi": "the address of the batch API",
    "AWS::Athena::WorkGroup": "queries that people saved, and their history",
    "AWS::AutoScaling::AutoScalingGroup": "running nodes",
    "AWS::DynamoDB::GlobalTable": "jobs, their progress, and cases of repair",
    "AWS::DynamoDB::Table": "items",
    "AWS::EC2::EIP": "an address that others may have allowed",
    "AWS::EC2::VPC": "the network of everything",
    "AWS::ECR::Repository": "images",
    "AWS::ECS::Cluster": "services and their tasks",
    "AWS::EFS::FileSystem": "files",
    "AWS::EKS::Cluster": "every Kubernetes object",
    "AWS::ElastiCache::ServerlessCache": "signals",
    "AWS::ElasticLoadBalancingV2::LoadBalancer": "the address of the models",
    "AWS::Glue::Database": "tables and views that people added",
    "AWS::Glue::Table": "the partitions of a signal's history",
    "AWS::KMS::Key": "whatever it encrypts",
    "AWS::KinesisAnalyticsV2::Application": "the state and the snapshots of a streaming job",
    "AWS::Logs::LogGroup": "log lines",
    "AWS::MSK::Cluster": "events",
    "AWS::MSK::Topic": "events",
    "AWS::Route53::HostedZone": "name servers and records",
    "AWS::S3::Bucket": "objects",
    "AWS::SNS::Topic": "subscriptions that people confirmed",
    "AWS::SQS::Queue": "messages",
    "AWS::SSM::Parameter": "a value that people set, such as the stop of the controllers",
    "AWS::SecretsManager::Secret": "a secret",
    "AWS::ServiceDiscovery::PrivateDnsNamespace": "names by which tasks find each other",
    "AWS::StepFunctions::StateMachine": "running jobs",
}


def logical_ids(templates: Templates, stack: str) -> dict[str, str]:
    """Return type by logical id; what CDK itself puts in, with a hash of its content, apart."""
    return {
        logical_id: resource["Type"]
        for logical_id, resource in templates.by_stack[stack]["Resources"].items()
        if resource["Type"] != "AWS::CDK::Metadata"
    }


@pytest.mark.parametrize("stack", sorted(GOLDEN))
def test_nothing_that_stands_is_renamed(base_templates: Templates, stack: str) -> None:
    now = logical_ids(base_templates, stack)
    lost = [
        f"{logical_id} ({kind}) is gone; a deployment destroys {LOSSES.get(kind, 'it and makes another')}"
        for logical_id, kind in GOLDEN[stack].items()
        if now.get(logical_id) != kind
    ]
    assert lost == []


@pytest.mark.parametrize("stack", sorted(GOLDEN))
def test_what_holds_state_is_on_record(base_templates: Templates, stack: str) -> None:
    now = logical_ids(base_templates, stack)
    assert {name for name, kind in now.items() if kind in STATEFUL} <= GOLDEN[stack].keys()


def test_every_protected_stack_is_on_record(base_templates: Templates) -> None:
    protected = {
        name
        for name, artifact in base_templates.artifacts.items()
        if artifact["properties"].get("terminationProtection")
    }
    assert protected == GOLDEN.keys()


def test_options_rename_nothing(synthesise: Synthesise, base_templates: Templates) -> None:
    def options(spec: dict[str, Any]) -> None:
        spec["environment"].update(account="111122223333", availabilityZones=["us-west-2a", "us-west-2b"])
        spec["cluster"]["eks"].update(version="1.36", endpointAccess="publicAndPrivate")
        spec["pools"].append({"name": "spare", "instanceTypes": ["g6e.4xlarge"], "nodes": {"max": 2}})

    changed = synthesise(options)
    for stack in GOLDEN:
        assert logical_ids(base_templates, stack) == logical_ids(changed, stack)


def test_stateful_resources_keep_their_names(shipped_name: str, shipped_templates: Templates) -> None:
    now = {
        stack: {
            each: kind for each, kind in logical_ids(shipped_templates, stack).items() if kind in STATEFUL
        }
        for stack in shipped_templates.by_stack
    }
    assert {stack: stateful for stack, stateful in now.items() if stateful} == STATEFUL_IDS[shipped_name]


def test_every_shipped_blueprint_is_on_record() -> None:
    assert shipped().keys() == STATEFUL_IDS.keys()
