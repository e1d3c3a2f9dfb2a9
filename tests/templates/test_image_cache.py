"""Snapshots of images: the nodes that use them, and the stack that bakes them."""

from __future__ import annotations

import json
import re
import tomllib
from typing import Any

import pytest

from inference_catalog import image_cache
from inference_constructs.capacity.image_baker_policies import IMAGES_PATTERN
from tests.templates.conftest import Synthesise
from tests.templates.support import Templates, listed, statements, text

SNAPSHOT = {"ebsSnapshot": {"id": "snap-0a1b2c3d"}}
NOT_YET: dict[str, Any] = {"ebsSnapshot": {}}


def accelerated(how: dict[str, Any], **fields: Any) -> Any:
    """A change that says how images come to the base document's pool."""
    return lambda spec: spec["pools"][0].update(imageAcceleration=how, **fields)


def node_class(templates: Templates) -> dict[str, Any]:
    found: dict[str, Any] = templates.manifest("Capacity", "EC2NodeClass", "l40s")["spec"]
    return found


def data_volume(templates: Templates) -> dict[str, Any]:
    devices = node_class(templates)["blockDeviceMappings"]
    volumes: dict[str, dict[str, Any]] = {each["deviceName"]: each["ebs"] for each in devices}
    return volumes[image_cache.DATA_DEVICE]


@pytest.fixture(scope="module")
def baking(synthesise: Synthesise) -> Templates:
    return synthesise(accelerated(NOT_YET))


def definition(templates: Templates) -> dict[str, Any]:
    machine = templates.only("AWS::StepFunctions::StateMachine", image_cache.STACK)
    found: dict[str, Any] = json.loads(text(machine["DefinitionString"]))
    return found


def test_a_node_starts_with_the_snapshot_s_images(synthesise: Synthesise) -> None:
    templates = synthesise(accelerated(SNAPSHOT, disk={"sizeGib": 300}))
    assert data_volume(templates) == {
        "volumeSize": "300Gi",
        "volumeType": "gp3",
        "encrypted": True,
        "throughput": 596,
        "iops": 3000,
        "snapshotID": "snap-0a1b2c3d",
        "volumeInitializationRate": 300,
        "deleteOnTermination": True,
    }


def test_an_array_of_nvme_would_hide_the_images(synthesise: Synthesise, base_templates: Templates) -> None:
    assert node_class(base_templates)["instanceStorePolicy"] == "RAID0"
    assert "instanceStorePolicy" not in node_class(synthesise(accelerated(SNAPSHOT)))


def test_until_a_snapshot_is_named_nodes_pull_as_ever(
    baking: Templates, synthesise: Synthesise, base_templates: Templates
) -> None:
    assert node_class(baking) == node_class(base_templates)
    assert node_class(synthesise(accelerated({"sociParallelPull": {}}))) == node_class(base_templates)


def test_nothing_bakes_unless_a_pool_asks_for_it(base_templates: Templates, baking: Templates) -> None:
    assert image_cache.STACK not in base_templates.by_stack
    assert baking.by_stack.keys() - base_templates.by_stack.keys() == {image_cache.STACK}


def test_what_is_unpacked_is_unpacked_as_on_the_nodes(baking: Templates) -> None:
    template = baking.only("AWS::EC2::LaunchTemplate", image_cache.STACK)["LaunchTemplateData"]
    baker = tomllib.loads(template["UserData"]["Fn::Base64"])["settings"]
    nodes = tomllib.loads(node_class(baking)["userData"])["settings"]
    for setting in ("container-runtime", "container-runtime-plugins"):
        assert baker[setting] == nodes[setting]
    release = node_class(baking)["amiSelectorTerms"][0]["ssmParameter"].split("/")[6]
    assert template["ImageId"] == (
        f"resolve:ssm:/aws/service/bottlerocket/aws-k8s-1.35/x86_64/{release}/image_id"
    )
    outputs = baking.by_stack[image_cache.STACK]["Outputs"]
    assert outputs[image_cache.BOTTLEROCKET_OUTPUT]["Value"] == f"aws-k8s-1.35/v{release}"
    script = json.dumps(baking.only("AWS::SSM::Document", image_cache.STACK)["Content"])
    assert "--snapshotter soci " in script


def test_an_architecture_has_a_template_of_its_own(synthesise: Synthesise) -> None:
    templates = synthesise(two_architectures)
    found = templates.properties("AWS::EC2::LaunchTemplate", image_cache.STACK)
    assert {each["LaunchTemplateData"]["InstanceType"] for each in found} == {"m7i.2xlarge", "m7g.2xlarge"}
    images = {each["LaunchTemplateData"]["ImageId"].split("/")[5] for each in found}
    assert images == {"x86_64", "arm64"}
    given = definition(templates)["States"]["ReadInput"]["Assign"]["launchTemplates"]
    assert given.keys() == {"amd64", "arm64"}


def two_architectures(spec: dict[str, Any]) -> None:
    spec["pools"][0]["imageAcceleration"] = NOT_YET
    spec["pools"].append(
        {
            "name": "t4g",
            "instanceTypes": ["g5g.16xlarge"],
            "nodes": {"max": 1},
            "imageAcceleration": NOT_YET,
        }
    )


def test_nobody_reaches_the_instance(baking: Templates) -> None:
    template = baking.only("AWS::EC2::LaunchTemplate", image_cache.STACK)["LaunchTemplateData"]
    assert template["MetadataOptions"] == {"HttpPutResponseHopLimit": 1, "HttpTokens": "required"}
    assert "KeyName" not in template
    [interface] = template["NetworkInterfaces"]
    assert interface["AssociatePublicIpAddress"] is False
    assert "PrivateSubnet" in json.dumps(interface["SubnetId"])
    group = baking.only("AWS::EC2::SecurityGroup", image_cache.STACK)
    assert "SecurityGroupIngress" not in group
    [out] = group["SecurityGroupEgress"]
    assert (out["FromPort"], out["ToPort"], out["IpProtocol"]) == (443, 443, "tcp")


def test_every_volume_is_encrypted(baking: Templates) -> None:
    volumes = definition(baking)["States"]["StartInstance"]["Arguments"]["BlockDeviceMappings"]
    assert [(each["DeviceName"], each["Ebs"]["Encrypted"]) for each in volumes] == [
        ("/dev/xvda", True),
        (image_cache.DATA_DEVICE, True),
    ]


def rights(templates: Templates) -> list[dict[str, Any]]:
    [role] = [
        resource
        for resource in templates.resources("AWS::IAM::Role", image_cache.STACK)
        if "states.amazonaws.com" in json.dumps(resource["Properties"]["AssumeRolePolicyDocument"])
    ]
    return list(statements(role))


def test_the_role_allows_each_call_of_the_state_machine_and_no_other(baking: Templates) -> None:
    resources = [state["Resource"] for state in definition(baking)["States"].values() if "Resource" in state]
    operations = [resource.removeprefix("arn:aws:states:::aws-sdk:").split(":") for resource in resources]
    called = {f"{service}:{name[0].upper()}{name[1:]}" for service, name in operations}
    allowed = {action for statement in rights(baking) for action in listed(statement["Action"])}
    # What RunInstances needs beside itself, and the log.
    beside = {"ec2:CreateTags", "iam:PassRole", "ssm:GetParameter", "ssm:GetParameters"}
    assert {action for action in allowed if not action.startswith("logs:")} == called | beside


def test_only_what_a_bake_made_can_be_changed(baking: Templates) -> None:
    changing = re.compile(r"ec2:(Stop|Terminate|CreateSnapshot|DeleteSnapshot)|ssm:SendCommand")
    for statement in rights(baking):
        targets = [text(each) for each in listed(statement["Resource"])]
        if changing.match(listed(statement["Action"])[0]) and any(each.endswith("/*") for each in targets):
            conditions = json.dumps(statement["Condition"])
            assert '{"aws:RequestTag/' in conditions or '{"aws:ResourceTag/' in conditions, statement
            assert '/inference-blueprints:platform": "try"' in conditions


def test_instances_come_from_the_template_alone(baking: Templates) -> None:
    for statement in rights(baking):
        if listed(statement["Action"]) == ["ec2:RunInstances"]:
            [template] = statement["Condition"]["ArnEquals"]["ec2:LaunchTemplate"]
            assert ":launch-template/" in text(template)


def test_what_a_bake_makes_carries_the_tags_that_its_role_asks_for(baking: Templates) -> None:
    states = definition(baking)["States"]
    for state in ("StartInstance", "TakeSnapshot"):
        for specification in states[state]["Arguments"]["TagSpecifications"]:
            tags = {tag["Key"]: tag["Value"] for tag in specification["Tags"]}
            assert tags["inference-blueprints:platform"] == "try"
            assert tags[image_cache.POOL_TAG] == "{% $pool %}"


def test_every_call_that_fails_leads_to_the_instance_s_end(baking: Templates) -> None:
    states = definition(baking)["States"]
    tasks = {name: state for name, state in states.items() if state["Type"] == "Task"}
    leads_to = {name: state["Catch"][0]["Next"] for name, state in tasks.items()}
    assert leads_to.pop("StartInstance") == "NotBaked"
    assert leads_to.pop("TerminateInstance") == "InstanceLeft"
    assert leads_to.pop("DeleteSnapshot") == "SnapshotLeft"
    assert set(leads_to.values()) == {"TerminateInstance"}
    assert all(state["Catch"][0]["ErrorEquals"] == ["States.ALL"] for state in tasks.values())
    # A machine that ran out of time would end here and now, and its instance would not.
    assert "TimeoutSeconds" not in definition(baking)


def test_every_state_is_reached_and_there(baking: Templates) -> None:
    document = definition(baking)
    named = {document["StartAt"]}
    for state in document["States"].values():
        named |= {state[key] for key in ("Next", "Default") if key in state}
        named |= {each["Next"] for key in ("Choices", "Catch") for each in state.get(key, [])}
    assert named == document["States"].keys()


@pytest.mark.parametrize(
    "images",
    ["nvcr.io/nvidia/ai-dynamo/vllm-runtime:1.6.1", f"a.io/b@sha256:{'0' * 64} c.io:443/d_e:f"],
)
def test_the_document_takes_images(images: str) -> None:
    assert re.fullmatch(IMAGES_PATTERN, images)


@pytest.mark.parametrize(
    "other", ["", "a; reboot", "$(reboot)", "a `b`", "--all", "a\nb", "a  b", "a|b", "'a'"]
)
def test_the_document_takes_nothing_else(other: str) -> None:
    assert not re.fullmatch(IMAGES_PATTERN, other)
