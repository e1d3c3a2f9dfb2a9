"""Each check of a change, with the templates that AWS or a running job would not survive."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any, cast

import pytest
from botocore.exceptions import ClientError

from inference_blueprints.operate.aws.account import Account
from inference_blueprints.operate.changes.change_checks import check_change
from inference_blueprints.operate.changes.deployment_steps import refuse, write_step
from inference_blueprints.operate.changes.platform_change import Held, PlatformChange
from inference_blueprints.operate.check_results import CheckResult
from inference_blueprints.operate.cloudformation.deployed_stacks import FOUNDATIONS, DeployedStack
from inference_contracts.errors import UserError

ROLE = "AWS::IAM::Role"
PATH = "/inference-blueprints/batch/a/"
Resources = dict[str, dict[str, Any]]


class FakeAws:
    """The answers of every service that is asked, from a few facts."""

    def __init__(self) -> None:
        self.running = 0
        self.objects: set[str] = set()
        self.log_groups: dict[str, str | None] = {}
        self.physical: dict[str, str] = {}
        self.is_protected = False

    def get_paginator(self, operation: str) -> FakeAws:
        self._operation = operation
        return self

    def paginate(self, **_: str) -> list[dict[str, Any]]:
        if self._operation == "describe_log_groups":
            return [{"logGroups": [{"logGroupName": name} for name in self.log_groups]}]
        summaries = [
            {"LogicalResourceId": name, "PhysicalResourceId": identifier}
            for name, identifier in self.physical.items()
        ]
        return [{"StackResourceSummaries": summaries}]

    def list_executions(self, **_: str) -> dict[str, Any]:
        return {"executions": [{}] * self.running}

    def list_objects_v2(self, *, Prefix: str, **_: object) -> dict[str, int]:  # noqa: N803
        return {"KeyCount": int(any(key.startswith(Prefix) for key in self.objects))}

    def describe_stacks(self, **_: str) -> dict[str, Any]:
        return {"Stacks": [{"EnableTerminationProtection": self.is_protected}]}

    def describe_stack_resources(self, *, PhysicalResourceId: str) -> dict[str, Any]:  # noqa: N803
        owner = self.log_groups[PhysicalResourceId]
        if owner is None:
            error = {"Error": {"Code": "ValidationError", "Message": f"Stack for {owner} does not exist"}}
            raise ClientError(error, "DescribeStackResources")
        return {"StackResources": [{"StackName": owner, "ResourceStatus": "CREATE_COMPLETE"}]}


class FakeAccount:
    region = "us-west-2"

    def __init__(self) -> None:
        self.aws = FakeAws()

    def client(self, _service: str) -> FakeAws:
        return self.aws


@pytest.fixture
def account() -> FakeAccount:
    return FakeAccount()


def changed(
    account: FakeAccount,
    old: dict[str, Resources],
    new: dict[str, Resources],
    *,
    status: str = "UPDATE_COMPLETE",
    agrees: bool = False,
) -> PlatformChange:
    stacks = {
        name: DeployedStack(
            name, f"arn:{name}", status, FOUNDATIONS.index(kind) if kind in FOUNDATIONS else len(FOUNDATIONS)
        )
        for name in old
        for kind in [name.removeprefix("a-")]
    }
    templates = [{name: {"Resources": each} for name, each in stack.items()} for stack in (old, new)]
    return PlatformChange(cast(Account, account), stacks, templates[0], templates[1], agrees)


def after(change: PlatformChange, stack: str) -> Resources:
    """Return a stack's resources in the next step."""
    template = copy.deepcopy(cast(dict[str, Any], change.new[stack]))
    for finding in check_change(change):
        if isinstance(finding, Held) and finding.stack == stack:
            finding.edit(template)
    resources: Resources = template["Resources"]
    return resources


def errors(change: PlatformChange) -> list[str]:
    return [
        str(each)
        for each in check_change(change)
        if isinstance(each, CheckResult) and each.severity == "error"
    ]


def held(change: PlatformChange) -> list[str]:
    return [each.check for each in check_change(change) if isinstance(each, Held)]


def release(name: str = "keda", **fields: Any) -> dict[str, Any]:
    properties = {"Release": name, "Namespace": "keda", "Version": "1"}
    return {
        "Type": "Custom::AWSCDK-EKS-HelmChart",
        "Properties": properties,
        "DeletionPolicy": "Delete",
        **fields,
    }


def association(account_name: str) -> dict[str, Any]:
    properties = {"ClusterName": "a", "Namespace": "keda", "ServiceAccount": account_name, "RoleArn": "r"}
    return {"Type": "AWS::EKS::PodIdentityAssociation", "Properties": properties}


def role(path: str | None) -> dict[str, Any]:
    return {"Type": ROLE, "Properties": {} if path is None else {"Path": path}}


def policy(*statements: dict[str, Any]) -> dict[str, Any]:
    document = {"Statement": list(statements)}
    return {"Type": "AWS::S3::BucketPolicy", "Properties": {"PolicyDocument": document}}


MACHINE = {"Type": "AWS::StepFunctions::StateMachine", "Properties": {}}
ALLOW = {"Effect": "Allow", "Action": "s3:GetObject"}
DENY = {
    "Effect": "Deny",
    "Condition": {
        "ArnNotLike": {
            "aws:PrincipalArn": [
                {"Fn::Join": ["", ["arn:aws:iam::", {"Ref": "AWS::AccountId"}, f":role{PATH}*"]]}
            ]
        }
    },
}


def bucket(**days: int) -> dict[str, Any]:
    rules = [
        {"Status": "Enabled", "Prefix": f"{name}/", "ExpirationInDays": limit} for name, limit in days.items()
    ]
    always = {"Status": "Enabled", "NoncurrentVersionExpiration": {"NoncurrentDays": 1}}
    return {
        "Type": "AWS::S3::Bucket",
        "Properties": {"LifecycleConfiguration": {"Rules": [always, *rules]}},
    }


def test_nothing_is_found_where_nothing_changes(account: FakeAccount) -> None:
    """A check that always finds something would make every deployment two steps."""
    stacks = {"a-Data": {"B": bucket(jobs=30), "P": policy(DENY)}, "a-Batch": {"R": role(PATH), "M": MACHINE}}
    account.aws.running = 1
    assert check_change(changed(account, stacks, copy.deepcopy(stacks))) == []


def test_an_association_of_another_stack_is_refused(account: FakeAccount) -> None:
    """EKS answers 409 in the middle of the deployment (eksctl#7753)."""
    old: dict[str, Resources] = {"a-Platform": {}, "a-Batch": {"I": association("keda-operator")}}
    new: dict[str, Resources] = {"a-Platform": {"I": association("keda-operator")}, "a-Batch": {}}
    [error] = errors(changed(account, old, new))
    assert "a keda keda-operator exists, and a-Batch has it as I" in error
    other: dict[str, Resources] = {"a-Platform": {"I": association("keda-scaler")}, "a-Batch": {}}
    assert errors(changed(account, old, other)) == []


def test_an_object_of_another_stack_is_refused_unless_that_stack_is_first(account: FakeAccount) -> None:
    """kubectl create refuses what exists; what an earlier stack has given away does not."""
    item = json.dumps([{"kind": "Namespace", "metadata": {"name": "inference"}}])
    manifest = {"Type": "Custom::AWSCDK-EKS-KubernetesResource", "Properties": {"Manifest": item}}
    first: dict[str, Resources] = {"a-Platform": {"N": manifest}, "a-Model-x": {}}
    second: dict[str, Resources] = {"a-Platform": {}, "a-Model-x": {"N": manifest}}
    assert errors(changed(account, first, second)) == []
    [error] = errors(changed(account, second, first))
    assert "Namespace inference exists, and a-Model-x has it" in error


def test_a_name_prevents_a_replacement_and_data_is_not_replaced(account: FakeAccount) -> None:
    """CloudFormation stops the update, or deletes a table with everything in it."""
    named = {
        "Type": "AWS::MSK::Topic",
        "Properties": {"TopicName": "t", "ClusterArn": "c", "ReplicationFactor": 2},
    }
    other = {"Type": "AWS::S3::Bucket", "Properties": {"BucketName": "one"}}
    old: dict[str, Resources] = {"a-Streaming": {"T": named, "B": other}}
    new = copy.deepcopy(old)
    new["a-Streaming"]["T"]["Properties"]["ReplicationFactor"] = 3
    new["a-Streaming"]["B"]["Properties"]["BucketName"] = "two"
    found = errors(changed(account, old, new))
    assert "ReplicationFactor cannot change while its name t stays" in found[0]
    assert "BucketName cannot change: its data would be deleted" in found[1]
    new["a-Streaming"]["B"]["UpdateReplacePolicy"] = "Retain"
    new["a-Streaming"]["T"]["Properties"]["ReplicationFactor"] = {"Ref": "Computed"}
    assert errors(changed(account, old, new)) == []


def test_a_release_is_kept_by_both_stacks_for_one_step(account: FakeAccount) -> None:
    """The old stack uninstalled KEDA after the new one had upgraded it."""
    old: dict[str, Resources] = {
        "a-Platform": {},
        "a-Batch": {"Keda": release(DependsOn=["Gone"]), "Gone": association("x")},
    }
    new: dict[str, Resources] = {"a-Platform": {"Keda": release()}, "a-Batch": {}}
    change = changed(account, old, new)
    assert after(change, "a-Platform")["Keda"]["DeletionPolicy"] == "Retain"
    kept = after(change, "a-Batch")["Keda"]
    assert (kept["DeletionPolicy"], kept["DependsOn"]) == ("Retain", [])
    assert kept["Metadata"], "CloudFormation does not change a deletion policy alone"
    again = changed(account, {"a-Platform": {"Keda": release()}, "a-Batch": {"Keda": kept}}, new)
    assert held(again) == [], "the next step lets it go"


def test_a_running_job_keeps_its_roles_and_its_release(account: FakeAccount) -> None:
    """Executions keep the role with which they began (UpdateStateMachine), and it was deleted."""
    account.aws.physical = {"M": "arn:machine"}
    account.aws.running = 2
    old: dict[str, Resources] = {
        "a-Platform": {},
        "a-Batch": {"M": MACHINE, "R": role(None), "Keda": release()},
    }
    new: dict[str, Resources] = {
        "a-Platform": {"Keda": release(), "N": {"Type": "x", "DependsOn": ["Keda"]}},
        "a-Batch": {"M": MACHINE, "R": role(PATH)},
    }
    change = changed(account, old, new)
    assert after(change, "a-Batch") == old["a-Batch"]
    assert after(change, "a-Platform") == {"N": {"Type": "x", "DependsOn": []}}
    needs = {
        "Type": "x",
        "Properties": {"V": {"Fn::GetStackOutput": {"StackName": "a-Batch", "OutputName": "O"}}},
    }
    [error] = errors(changed(account, old, {**new, "a-Monitoring": {"N": needs}}))
    assert "other stacks need O of it; deploy after the end" in error
    account.aws.running = 0
    assert "running jobs" not in held(change)


def test_a_denial_waits_until_roles_have_their_path(account: FakeAccount) -> None:
    """The bucket's stack is first, so running roles were denied until their own stack followed."""
    old = {"a-Data": {"P": policy(ALLOW)}, "a-Batch": {"R": role(None)}}
    new = {"a-Data": {"P": policy(ALLOW, DENY)}, "a-Batch": {"R": role(PATH)}}
    change = changed(account, old, new)
    assert after(change, "a-Data")["P"] == policy(ALLOW)
    moved = changed(account, {**old, "a-Batch": {"R": role(PATH)}}, new)
    assert after(moved, "a-Data")["P"] == policy(ALLOW, DENY)
    other = {**DENY, "Condition": {"ArnNotLike": {"aws:PrincipalArn": ["arn:aws:iam::1:role/else*"]}}}
    assert held(changed(account, old, {**new, "a-Data": {"P": policy(ALLOW, other)}})) == []
    both = {**DENY, "Condition": {"ArnNotLike": {"aws:PrincipalArn": "arn:aws:iam::*:role/*"}}}
    assert held(changed(account, old, {**new, "a-Data": {"P": policy(ALLOW, both)}})) == []


def test_objects_that_exist_expire_with_consent_only(account: FakeAccount) -> None:
    """A rule counts for objects that are older than it, so results were deleted at the next night."""
    account.aws.physical = {"B": "bucket"}
    account.aws.objects = {"jobs/old", "nightly/ads/x"}
    old = {"a-Data": {"B": bucket(nightly=60)}}
    new = {"a-Data": {"B": bucket(jobs=30, nightly=30, uploads=2)}}
    assert after(changed(account, old, new), "a-Data")["B"] == bucket(nightly=60, uploads=2)
    assert held(changed(account, old, new, agrees=True)) == []
    assert held(changed(account, new, old)) == [], "a longer time deletes nothing"
    account.aws.objects = set()
    assert held(changed(account, old, new)) == []


def test_a_log_group_that_nobody_owns_is_taken_over(account: FakeAccount) -> None:
    """EKS had made it, and CloudFormation refused to create it again."""
    group = {"Type": "AWS::Logs::LogGroup", "Properties": {"LogGroupName": "/aws/eks/a/cluster"}}
    old: dict[str, Resources] = {"a-Cluster": {}}
    new: dict[str, Resources] = {"a-Cluster": {"Log": group}}
    account.aws.log_groups = {"/aws/eks/a/cluster": None}
    change = changed(account, old, new)
    assert after(change, "a-Cluster")["Log"]["DeletionPolicy"] == "Retain"
    assert [each.imports for each in check_change(change) if isinstance(each, Held)] == [True]
    account.aws.log_groups = {"/aws/eks/a/cluster": "other"}
    [error] = errors(changed(account, old, new))
    assert "belongs to the stack other" in error


def test_a_topic_keeps_its_partitions(account: FakeAccount) -> None:
    """Kafka takes no partition away, and the broker refuses to."""
    topic = {"Type": "AWS::MSK::Topic", "Properties": {"PartitionCount": 8}}
    fewer = {"Type": "AWS::MSK::Topic", "Properties": {"PartitionCount": 4}}
    change = changed(account, {"a-Streaming": {"T": topic}}, {"a-Streaming": {"T": fewer}})
    assert after(change, "a-Streaming") == {"T": topic}
    assert held(changed(account, {"a-Streaming": {"T": fewer}}, {"a-Streaming": {"T": topic}})) == []


@pytest.mark.parametrize(
    ("status", "command"),
    [
        ("UPDATE_ROLLBACK_FAILED", "continue-update-rollback --stack-name a-Data"),
        ("DELETE_FAILED", "delete-stack --stack-name a-Data"),
        ("ROLLBACK_COMPLETE", "--no-enable-termination-protection --stack-name a-Data"),
    ],
)
def test_a_stack_that_cannot_be_updated_is_named_with_a_command(
    account: FakeAccount, status: str, command: str
) -> None:
    account.aws.is_protected = True
    change = changed(account, {"a-Data": {}}, {"a-Data": {}}, status=status)
    [error] = errors(change)
    assert command in error
    with pytest.raises(UserError, match="nothing was changed"):
        refuse(check_change(change))


def test_data_that_leaves_is_named(account: FakeAccount) -> None:
    kept = {"Type": "AWS::S3::Bucket", "DeletionPolicy": "Retain"}
    old = {"a-Data": {"Lost": {"Type": "AWS::S3::Bucket", "DeletionPolicy": "Delete"}, "Kept": kept}}
    [finding] = check_change(changed(account, old, {"a-Data": {}}))
    assert str(finding).startswith("warning  removed data: a-Data: AWS::S3::Bucket Lost is deleted")


def test_an_edited_template_is_uploaded_under_another_name(tmp_path: Path) -> None:
    """The CDK does not upload what the bucket has: the stack would get the template without the edit."""
    assembly = tmp_path / "all"
    assembly.mkdir()
    (assembly / "a-Data.template.json").write_text('{"Resources": {}}')
    asset = {"source": {"path": "a-Data.template.json"}, "destinations": {"d": {"objectKey": "OLD.json"}}}
    (assembly / "a-Data.assets.json").write_text(json.dumps({"files": {"OLD": asset}}))
    (assembly / "manifest.json").write_text('{"url": "s3://bucket/OLD.json"}')
    write_step(assembly, tmp_path / "step", [Held("c", "a-Data", "m", lambda each: each.update(Edited=True))])
    assert json.loads((tmp_path / "step/a-Data.template.json").read_text())["Edited"]
    [name] = json.loads((tmp_path / "step/a-Data.assets.json").read_text())["files"]
    assert name in (tmp_path / "step/manifest.json").read_text()
    assert (name, "OLD" in (tmp_path / "step/a-Data.assets.json").read_text()) != ("OLD", True)
    assert "OLD" in (assembly / "manifest.json").read_text(), "the next step has every change"
