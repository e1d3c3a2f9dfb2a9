"""Stacks that go, what no stack owns, and the proof, in an account of moto's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from moto.core import DEFAULT_ACCOUNT_ID
from moto.ec2.models import ec2_backends

import inference_catalog as catalog
from inference_blueprints.operate.aws.account import Account
from inference_blueprints.operate.cloudformation.deployed_stacks import (
    DeployedStack,
    deployed_stacks,
    level,
    waves,
)
from inference_blueprints.operate.removal import leftovers, platform_removal
from inference_blueprints.operate.removal.platform_removal import Removal, Retained
from inference_contracts.errors import UserError
from tests.unit.operate.conftest import REGION
from tests.unit.operate.fake_cloudformation import FakeCloudFormation, write_assembly
from tests.unit.operate.faults import Faults, ec2_error

PLATFORM = {"Key": "inference-blueprints:platform", "Value": "try"}
KARPENTER = {"Key": "karpenter.sh/nodepool", "Value": "l40s"}


def launch(account: Account, *tags: dict[str, str]) -> str:
    ec2 = account.client("ec2")
    image = ec2.register_image(Name="any")["ImageId"]
    specification = [{"ResourceType": kind, "Tags": list(tags)} for kind in ("instance", "volume")]
    started = ec2.run_instances(
        ImageId=image, MinCount=1, MaxCount=1, InstanceType="g6e.2xlarge", TagSpecifications=specification
    )
    return str(started["Instances"][0]["InstanceId"])


@pytest.fixture
def stacks(account: Account, monkeypatch: pytest.MonkeyPatch) -> FakeCloudFormation:
    fake = FakeCloudFormation()
    client = account.client
    monkeypatch.setattr(
        account, "client", lambda service: fake if service == "cloudformation" else client(service)
    )
    return fake


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def remove(
    account: Account, stacks: FakeCloudFormation, said: list[str], monkeypatch: pytest.MonkeyPatch
) -> Removal:
    monkeypatch.setattr(platform_removal, "DRAIN_SECONDS", 0.0)
    monkeypatch.setattr(platform_removal, "SWEEP_SECONDS", 60.0)
    return Removal(account, "try", blueprint="a.yaml", say=said.append)


def test_stacks_are_those_with_the_platform_s_tag_over_all_pages(stacks: FakeCloudFormation) -> None:
    for number in range(25):
        stacks.add(f"try-Model-{number:02}")
    stacks.add("try-two-Data", platform="try-two")
    found = deployed_stacks(stacks, "try")
    assert [stack.name for stack in found] == [f"try-Model-{number:02}" for number in range(25)]


def test_what_stands_on_others_goes_first_and_models_together() -> None:
    names = ["Data", "Cluster", "Model-a", "Capacity", "Model-b", "Network", "Platform"]
    names += ["FrontDoor", "Certificates"]  # rules of models name the target group of the front door
    deployed = [DeployedStack(f"try-{kind}", "", "", level("try", f"try-{kind}")) for kind in names]
    assert [[stack.name.removeprefix("try-") for stack in wave] for wave in waves(deployed)] == [
        ["Model-a", "Model-b"],
        ["FrontDoor"],
        ["Certificates"],
        ["Capacity"],
        ["Platform"],
        ["Cluster"],
        ["Network"],
        ["Data"],
    ]


def test_destroy_removes_protected_stacks_and_says_what_is_kept(
    stacks: FakeCloudFormation, remove: Removal, said: list[str]
) -> None:
    for kind in ("Data", "Cluster", "Model-a"):
        stacks.add(f"try-{kind}")
    stacks.add("other-Data", platform="other")
    stacks.kept["try-Data"] = "AWS::KMS::Key"
    assert remove.destroy() == [Retained("try-Data", "AWS::KMS::Key", "its-id")]
    assert stacks.names() == ["other-Data"]
    assert [line for line in said if line.endswith("deleted")] == [
        "try-Model-a: deleted",
        "try-Cluster: deleted",
        "try-Data: deleted",
    ]


def test_the_last_snapshot_of_a_cache_stays_and_is_named(stacks: FakeCloudFormation, remove: Removal) -> None:
    """No event of CloudFormation names it, so `destroy` said that nothing billable was left."""
    properties = {"ServerlessCacheName": "try-signals", "FinalSnapshotName": {"Fn::Join": ["", ["x"]]}}
    cache = {"Type": "AWS::ElastiCache::ServerlessCache", "Properties": properties}
    other = {"Type": "AWS::ElastiCache::ServerlessCache", "Properties": {"ServerlessCacheName": "gone"}}
    stacks.add("try-Stores")
    stacks.templates["try-Stores"] = {"Resources": {"Cache": cache, "Other": other}}
    [kept] = remove.destroy()
    assert kept == Retained("try-Stores", "last snapshot of AWS::ElastiCache::ServerlessCache", "try-signals")
    assert kept.price(catalog.service_prices(REGION)) == "no known price"


def test_what_stays_has_the_prices_of_the_plan() -> None:
    services = catalog.service_prices(REGION)
    key = Retained("try-Data", "AWS::KMS::Key", "k")
    bucket = Retained("try-Data", "AWS::S3::Bucket", "b")
    assert key.price(services) == f"{services.usd('kms_key'):.2f} USD a month"
    assert (key.usd_per_month(services), key.usd_per_gb_month(services)) == (services.usd("kms_key"), None)
    assert bucket.price(services) == f"{services.usd('s3_standard'):g} USD a month per GB that it holds"
    assert (bucket.usd_per_month(services), bucket.usd_per_gb_month(services)) == (
        None,
        services.usd("s3_standard"),
    )


def test_nodes_are_waited_for_while_karpenter_is_there_to_end_them(
    account: Account, stacks: FakeCloudFormation, remove: Removal, said: list[str]
) -> None:
    node = launch(account, {"Key": "kubernetes.io/cluster/try", "Value": "owned"}, KARPENTER)
    stacks.add("try-Platform")
    remove.destroy()
    assert said.index(f"nodes that Karpenter did not end in time: {node}") < said.index(
        "try-Platform: deleting"
    )


def test_snapshots_go_with_the_platform(account: Account, remove: Removal, said: list[str]) -> None:
    ec2 = account.client("ec2")
    volume = ec2.create_volume(AvailabilityZone="us-west-2a", Size=1)["VolumeId"]
    names = []
    for platform in ("try", "other"):
        tag = {"Key": "inference-blueprints:platform", "Value": platform}
        specification = [{"ResourceType": "snapshot", "Tags": [tag]}]
        names.append(ec2.create_snapshot(VolumeId=volume, TagSpecifications=specification)["SnapshotId"])
    mine, others = names
    remove.destroy()
    assert f"snapshot {mine}: deleting, because no stack owns it" in said
    left = {each["SnapshotId"] for each in ec2.describe_snapshots(OwnerIds=["self"])["Snapshots"]}
    assert (mine in left, others in left) == (False, True)


def test_what_a_stack_owns_is_left_to_the_stack(
    account: Account, stacks: FakeCloudFormation, remove: Removal, said: list[str]
) -> None:
    instance = launch(account, PLATFORM)
    stacks.add("try-Network")
    stacks.resources["try-Network"] = [each.identifier for each in leftovers.leftovers(account, "try")]
    with pytest.raises(UserError, match=f"these billable resources are left: instance {instance}"):
        remove.destroy()
    assert not any("no stack owns it" in line for line in said)


def test_an_instance_that_no_stack_owns_is_swept_with_its_volume(
    account: Account, remove: Removal, said: list[str]
) -> None:
    gone = launch(account, {"Key": "kubernetes.io/cluster/try", "Value": "owned"})
    kept = launch(account, {"Key": "kubernetes.io/cluster/try-two", "Value": "owned"})
    remove.destroy()
    reservations = account.client("ec2").describe_instances()["Reservations"]
    states = {
        each["InstanceId"]: each["State"]["Name"] for page in reservations for each in page["Instances"]
    }
    assert (states[gone], states[kept]) == ("terminated", "running")
    assert f"instance {gone}: deleting, because no stack owns it" in said


def test_a_load_balancer_volume_and_interface_of_the_cluster_are_swept(
    account: Account, remove: Removal
) -> None:
    ec2 = account.client("ec2")
    subnets = [each["SubnetId"] for each in ec2.describe_subnets()["Subnets"][:2]]
    account.client("elbv2").create_load_balancer(Name="stray", Subnets=subnets, Tags=[PLATFORM])
    volume = {"AvailabilityZone": "us-west-2a", "Size": 1}
    ec2.create_volume(**volume, TagSpecifications=[{"ResourceType": "volume", "Tags": [PLATFORM]}])
    owner = {"Key": "cluster.k8s.amazonaws.com/name", "Value": "try"}
    ec2.create_network_interface(
        SubnetId=subnets[0], TagSpecifications=[{"ResourceType": "network-interface", "Tags": [owner]}]
    )
    kinds = {each.kind for each in leftovers.leftovers(account, "try")}
    assert kinds == {"load balancer", "volume", "network interface"}
    remove.destroy()
    assert leftovers.leftovers(account, "try") == []


@pytest.mark.parametrize("state", ["deleting", "deleted"])
def test_a_nat_gateway_that_goes_is_not_left(account: Account, state: str) -> None:
    """EC2 still lists it, after its end for about an hour, and a removal would wait for it."""
    ec2 = account.client("ec2")
    made = ec2.create_nat_gateway(
        SubnetId=ec2.describe_subnets()["Subnets"][0]["SubnetId"],
        ConnectivityType="private",
        TagSpecifications=[{"ResourceType": "natgateway", "Tags": [PLATFORM]}],
    )
    gateway = made["NatGateway"]["NatGatewayId"]
    assert [each.identifier for each in leftovers.leftovers(account, "try")] == [gateway]
    ec2_backends[DEFAULT_ACCOUNT_ID][REGION].nat_gateways[gateway].state = state
    assert leftovers.leftovers(account, "try") == []


def test_a_security_group_that_eks_left_is_swept(account: Account, remove: Removal, said: list[str]) -> None:
    ec2 = account.client("ec2")
    groups = {}
    for platform in ("try", "try-two"):
        tag = {"Key": f"kubernetes.io/cluster/{platform}", "Value": "owned"}
        groups[platform] = ec2.create_security_group(
            GroupName=f"eks-cluster-sg-{platform}",
            Description="EKS",
            TagSpecifications=[{"ResourceType": "security-group", "Tags": [tag]}],
        )["GroupId"]
    Faults(ec2_error("DependencyViolation", "in use")).into(ec2, "DeleteSecurityGroup")
    remove.destroy()
    left = {each["GroupId"] for each in ec2.describe_security_groups()["SecurityGroups"]}
    assert (groups["try"] in left, groups["try-two"] in left) == (False, True)
    assert f"security group {groups['try']}: deleting, because no stack owns it" in said


def test_a_log_group_that_eks_created_again_is_swept(account: Account, remove: Removal) -> None:
    logs = account.client("logs")
    for name in ("/aws/eks/try/cluster", "/aws/eks/try/cluster-of-another", "/aws/eks/try-two/cluster"):
        logs.create_log_group(logGroupName=name)
    remove.destroy()
    assert [each["logGroupName"] for each in logs.describe_log_groups()["logGroups"]] == [
        "/aws/eks/try-two/cluster",
        "/aws/eks/try/cluster-of-another",
    ]


def test_what_cannot_be_swept_is_named_and_not_hidden(
    account: Account, remove: Removal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(platform_removal, "SWEEP_SECONDS", 0.0)
    ec2 = account.client("ec2")
    instance = launch(account, PLATFORM)
    ec2.modify_instance_attribute(InstanceId=instance, DisableApiTermination={"Value": True})
    Faults(*[ec2_error("IncorrectState", "stopping")] * 999).into(ec2, "TerminateInstances")
    with pytest.raises(UserError, match=f"these billable resources are left: .*{instance}") as raised:
        remove.destroy()
    assert "blueprints destroy a.yaml" in str(raised.value)


def test_access_denied_ends_in_one_line(stacks: FakeCloudFormation, remove: Removal) -> None:
    stacks.add("try-Data")
    stacks.denied.add("DeleteStack")
    with pytest.raises(UserError, match=r"not authorized to perform: cloudformation:DeleteStack"):
        remove.destroy()


def test_what_a_killed_deployment_has_begun_is_waited_for(
    stacks: FakeCloudFormation, remove: Removal, said: list[str]
) -> None:
    """It turns red if `destroy` has to be run again because CloudFormation still changes a stack."""
    stacks.add("try-Model-a", status="UPDATE_IN_PROGRESS")
    remove.destroy()
    assert said[0] == "try-Model-a is UPDATE_IN_PROGRESS: waits until CloudFormation has ended that"
    assert stacks.names() == []


class Killed(BaseException):
    """The end of a process by kill -9: nothing catches it."""


class KilledAt:
    """A client that ends the process after some calls.

    calls: How many are answered.
    """

    def __init__(self, client: FakeCloudFormation, calls: int) -> None:
        self._client = client
        self._left = calls

    def __getattr__(self, name: str) -> Any:
        def call(*positional: Any, **given: Any) -> Any:
            if self._left == 0:
                raise Killed
            self._left -= 1
            return getattr(self._client, name)(*positional, **given)

        return call


def test_killed_after_any_call_the_next_destroy_completes_and_names_what_stays(
    account: Account, stacks: FakeCloudFormation, remove: Removal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It turns red if a killed `destroy` leaves a stack that the next one does not delete, or something that
    is billed and that nobody has named."""
    stacks.kept = {"try-Data": "AWS::DynamoDB::Table"}
    plain, calls = account.client, 0

    def answer_with(client: object) -> None:
        monkeypatch.setattr(
            account, "client", lambda service: client if service == "cloudformation" else plain(service)
        )

    while True:
        for kind in ("Data", "Network", "Cluster", "Model-a"):
            stacks.add(f"try-{kind}")
        answer_with(KilledAt(stacks, calls))
        try:
            named = remove.destroy()
        except Killed:
            answer_with(stacks)
            kept = remove.destroy()
            assert stacks.names() == [], calls
            assert kept == [Retained("try-Data", "AWS::DynamoDB::Table", "its-id")], calls
        else:
            assert named == [Retained("try-Data", "AWS::DynamoDB::Table", "its-id")]
            break
        calls += 1
    assert calls > 20


def test_what_was_deleted_since_is_not_named(
    account: Account, stacks: FakeCloudFormation, remove: Removal
) -> None:
    """It turns red if `destroy` names a key or a bucket of an earlier life that a person has deleted."""
    stacks.kept = {
        "try-Data": "AWS::KMS::Key",
        "try-Batch": "AWS::S3::Bucket",
        "other-Data": "AWS::S3::Bucket",
    }
    for name in stacks.kept:
        stacks.add(name, platform=name.partition("-")[0], status="DELETE_COMPLETE")
    assert remove.destroy() == []
    account.client("s3").create_bucket(
        Bucket="its-id", CreateBucketConfiguration={"LocationConstraint": REGION}
    )
    assert [each.stack for each in remove.destroy()] == ["try-Batch"]


def test_a_failed_deletion_names_resource_reason_and_what_to_do(
    stacks: FakeCloudFormation, remove: Removal
) -> None:
    stacks.add("try-Network")
    stacks.add("try-Data")
    stacks.failing["try-Network"] = ("AWS::EC2::Subnet", "AccessDenied")
    with pytest.raises(UserError) as raised:
        remove.destroy()
    cause, what_to_do = str(raised.value).splitlines()
    assert cause == "try-Network: AWS::EC2::Subnet It: AccessDenied"
    assert what_to_do.startswith("what to do: add this permission to the role that deploys")
    assert stacks.names() == ["try-Network", "try-Data"]


def test_prune_deletes_what_the_blueprint_does_not_make(
    stacks: FakeCloudFormation, remove: Removal, monkeypatch: pytest.MonkeyPatch
) -> None:
    def synthesise(_blueprint: str, directory: Path) -> None:
        write_assembly(directory, {"try-Data": {}})

    monkeypatch.setattr(platform_removal, "synthesise", synthesise)
    for kind in ("Data", "Model-old"):
        stacks.add(f"try-{kind}")
    unnamed = remove.unnamed_stacks()
    assert [stack.name for stack in unnamed] == ["try-Model-old"]
    remove.prune(unnamed)
    assert stacks.names() == ["try-Data"]
