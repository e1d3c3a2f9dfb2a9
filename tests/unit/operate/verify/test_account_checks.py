"""What AWS says of a platform: stacks and their templates, the control plane, add-ons."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from inference_blueprints.operate.aws.account import Account
from inference_blueprints.operate.check_results import CheckResult, run_checks
from inference_blueprints.operate.verify import account_checks
from inference_blueprints.operate.verify.account_checks import ACCOUNT_CHECKS
from inference_blueprints.operate.verify.synthesised_platform import SynthesisedPlatform
from inference_blueprints.operate.verify.verified_platform import VerifiedPlatform
from tests.unit.operate.fake_cloudformation import FakeCloudFormation
from tests.unit.operate.faults import Faults, json_error

MakePlatform = Callable[..., VerifiedPlatform]
NAME = "p5en-disaggregated"
TEMPLATES: dict[str, dict[str, Any]] = {
    f"{NAME}-Data": {"Resources": {"Queue": {"Type": "AWS::SQS::Queue"}}, "Description": "Größe"},
    f"{NAME}-Cluster": {
        "Resources": {
            "CoreDns": {"Type": "AWS::EKS::Addon", "Properties": {"AddonName": "coredns"}},
            "Topic": {"Type": "AWS::SNS::Topic"},
        }
    },
}


@pytest.fixture
def here(platform: MakePlatform, account: Account, stacks: FakeCloudFormation) -> VerifiedPlatform:
    """The platform, deployed as the blueprint makes it."""
    for name, template in TEMPLATES.items():
        stacks.add(name, platform=NAME)
        stacks.templates[name] = copy.deepcopy(template)
    return replace(platform(), assembly=SynthesisedPlatform(TEMPLATES, {}))


@pytest.fixture
def stacks(account: Account, monkeypatch: pytest.MonkeyPatch) -> FakeCloudFormation:
    fake, client = FakeCloudFormation(), account.client
    monkeypatch.setattr(
        account, "client", lambda service: fake if service == "cloudformation" else client(service)
    )
    return fake


def problems(found: Iterable[CheckResult]) -> list[tuple[str, str, str | None]]:
    return [(each.severity, each.message, each.command) for each in found if each.severity != "ok"]


# Stacks


def test_stacks_as_the_blueprint_makes_them(here: VerifiedPlatform) -> None:
    (found,) = account_checks.stacks(here)
    assert (found.severity, found.message) == ("ok", "2 are complete and match the blueprint")


def test_what_cloudformation_cannot_spell_is_no_difference(
    here: VerifiedPlatform, stacks: FakeCloudFormation
) -> None:
    stacks.templates[f"{NAME}-Data"]["Description"] = "Gr??e"
    assert problems(account_checks.stacks(here)) == []


def test_missing_superfluous_and_other_stacks(here: VerifiedPlatform, stacks: FakeCloudFormation) -> None:
    stacks.delete(f"{NAME}-Data")
    stacks.templates[f"{NAME}-Cluster"]["Resources"]["CoreDns"]["Properties"]["AddonName"] = "other"
    stacks.add(f"{NAME}-Model-old", platform=NAME)
    stacks.add("another-Data", platform="another")
    assert problems(account_checks.stacks(here)) == [
        (
            "warning",
            f"{NAME}-Cluster differs from the blueprint; see the differences with `blueprints diff`",
            "blueprints deploy a.yaml",
        ),
        ("error", f"{NAME}-Data is not deployed", "blueprints deploy a.yaml"),
        ("warning", f"{NAME}-Model-old is not in the blueprint", "blueprints prune a.yaml"),
    ]


@pytest.mark.parametrize("status", ["UPDATE_ROLLBACK_COMPLETE", "CREATE_IN_PROGRESS", "DELETE_FAILED"])
def test_a_stack_that_is_not_complete(
    here: VerifiedPlatform, stacks: FakeCloudFormation, status: str
) -> None:
    stacks.add(f"{NAME}-Data", platform=NAME, status=status)
    assert problems(account_checks.stacks(here)) == [
        ("error", f"{NAME}-Data is {status}", "blueprints deploy a.yaml")
    ]


# Control plane and add-ons


def made(account: Account, version: str) -> None:
    subnets = account.client("ec2").describe_subnets()["Subnets"]  # one in each zone
    account.client("eks").create_cluster(
        name=NAME,
        version=version,
        roleArn="arn:aws:iam::123456789012:role/cluster",
        resourcesVpcConfig={"subnetIds": [each["SubnetId"] for each in subnets]},
    )


def test_the_control_plane_as_the_blueprint_says(here: VerifiedPlatform, account: Account) -> None:
    made(account, "1.35")
    (found,) = account_checks.control_plane(here)
    assert (found.severity, found.message) == ("ok", "Kubernetes 1.35, ACTIVE")


def test_another_version_of_kubernetes(here: VerifiedPlatform, account: Account) -> None:
    made(account, "1.33")
    ((severity, message, _),) = problems(account_checks.control_plane(here))
    assert (severity, message) == ("error", "Kubernetes 1.33 runs, the blueprint has 1.35")


def test_an_add_on_that_is_missing(here: VerifiedPlatform, account: Account) -> None:
    made(account, "1.35")
    eks = account.client("eks")
    Faults(json_error("ResourceNotFoundException", "no", 404)).into(eks, "DescribeAddon")
    assert problems(account_checks.add_ons(here)) == [
        ("error", "coredns is not installed", "blueprints deploy a.yaml")
    ]


@pytest.mark.parametrize(("status", "severity"), [("ACTIVE", "ok"), ("DEGRADED", "error")])
def test_an_add_on_that_is_degraded_says_why(
    here: VerifiedPlatform, account: Account, status: str, severity: str
) -> None:
    issue = {"code": "InsufficientNumberOfReplicas", "message": "0 of 2"}
    answer = {"addon": {"addonName": "coredns", "status": status, "health": {"issues": [issue]}}}
    Faults((200, json.dumps(answer).encode())).into(account.client("eks"), "DescribeAddon")
    (found,) = account_checks.add_ons(here)
    assert found.severity == severity
    assert severity == "ok" or "DEGRADED (InsufficientNumberOfReplicas: 0 of 2)" in found.message


def test_logs_of_the_control_plane_that_nobody_receives(here: VerifiedPlatform) -> None:
    ((severity, message, command),) = problems(account_checks.control_plane_logs(here))
    assert (severity, command) == ("error", "blueprints deploy a.yaml")
    assert message == f"the log group /aws/eks/{NAME}/cluster does not exist"


@pytest.mark.parametrize(
    ("age", "severity"), [(None, "error"), (timedelta(hours=2), "ok"), (timedelta(hours=4), "warning")]
)
def test_logs_of_the_control_plane_arrive(
    here: VerifiedPlatform, account: Account, age: timedelta | None, severity: str
) -> None:
    logs, group = account.client("logs"), f"/aws/eks/{NAME}/cluster"
    logs.create_log_group(logGroupName=group)
    stream: dict[str, Any] = {"logStreamName": "kube-apiserver-0a1b2c"}
    if age is not None:
        stream |= {"lastEventTimestamp": int((here.now - age).timestamp() * 1000)}
    Faults((200, json.dumps({"logStreams": [stream]}).encode())).into(logs, "DescribeLogStreams")
    (found,) = account_checks.control_plane_logs(here)
    assert found.severity == severity
    assert (found.command is None) == (severity == "ok")


def test_no_cluster_at_all_hides_no_other_check(here: VerifiedPlatform) -> None:
    found = {each.check: each for each in run_checks(ACCOUNT_CHECKS, here)}
    assert found["control plane"].severity == "unknown"
    assert (
        f"the cluster {NAME} does not exist in account 123456789012, us-west-2"
        in found["control plane"].message
    )
    assert {"stacks", "add-ons"} <= set(found)
