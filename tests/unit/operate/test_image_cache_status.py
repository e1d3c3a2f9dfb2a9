"""Whether snapshots hold what the plan needs, in an account of moto's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from inference_blueprints.operate.aws.account import Account
from inference_blueprints.operate.image_cache.snapshot_status import (
    SnapshotStatus,
    WantedSnapshot,
    snapshot_status,
)
from inference_catalog import image_cache
from inference_catalog.tags import PLATFORM_TAG
from tests.unit.operate.faults import Faults, ec2_error, json_error

WANTED = WantedSnapshot(
    pool="l40s",
    named=None,
    architecture="amd64",
    images=("nvcr.io/nvidia/engine:1.6.1",),
    size_gib=200,
    bottlerocket="aws-k8s-1.35/v1.66.0",
)
TAGS = {
    PLATFORM_TAG: "try",
    image_cache.POOL_TAG: "l40s",
    image_cache.IMAGES_TAG: WANTED.images_digest,
    image_cache.BOTTLEROCKET_TAG: WANTED.bottlerocket,
    image_cache.SNAPSHOTTER_TAG: "soci",
}


def take(account: Account, tags: Mapping[str, str] = TAGS, size: int = 200, **volume: Any) -> str:
    ec2 = account.client("ec2")
    made = ec2.create_volume(AvailabilityZone="us-west-2a", Size=size, **volume)
    tag_list = [{"Key": key, "Value": value} for key, value in tags.items()]
    specification = [{"ResourceType": "snapshot", "Tags": tag_list}] if tag_list else []
    snapshot = ec2.create_snapshot(VolumeId=made["VolumeId"], TagSpecifications=specification)
    return str(snapshot["SnapshotId"])


def status(account: Account, named: str | None, *, days: int = 0, **wanted: Any) -> SnapshotStatus:
    now = datetime.now(UTC) + timedelta(days=days, minutes=1)
    return snapshot_status(account, "try", replace(WANTED, named=named, **wanted), now=now)


def test_a_snapshot_of_the_plan_is_current(account: Account) -> None:
    named = take(account)
    found = status(account, named, days=3)
    assert (found.state, found.remarks, found.age_days, found.size_gib) == ("current", (), 3, 200)
    assert str(found) == f"current   l40s: {named}, 3 days old, 200 GiB"


def test_without_a_snapshot_nodes_pull(account: Account) -> None:
    found = status(account, None)
    assert (found.state, found.snapshot_id, found.others) == ("absent", None, ())
    assert (
        str(found)
        == "absent    l40s: no snapshot; the blueprint names no snapshot, so nodes pull their images"
    )


def test_one_that_is_baked_and_not_named_is_told(account: Account) -> None:
    baked = take(account)
    found = status(account, None)
    assert found.others == (baked,)
    assert f"write the newest one of this pool, {baked}, to ebsSnapshot.id" in str(found)


def test_what_is_not_used_any_more_is_told(account: Account) -> None:
    old, named = take(account), take(account)
    take(account, {**TAGS, image_cache.POOL_TAG: "another"})
    take(account, {**TAGS, PLATFORM_TAG: "try-two"})
    found = status(account, named)
    assert found.state == "current"
    assert str(found).endswith(f"; other snapshots of this pool: {old}")


@pytest.mark.parametrize(
    ("tags", "remark"),
    [
        (
            {image_cache.IMAGES_TAG: "0" * 32},
            "it has other images, so nodes pull nvcr.io/nvidia/engine:1.6.1",
        ),
        (
            {image_cache.BOTTLEROCKET_TAG: "aws-k8s-1.35/v1.65.0"},
            "it was baked with aws-k8s-1.35/v1.65.0, the nodes have aws-k8s-1.35/v1.66.0",
        ),
        (
            {image_cache.BOTTLEROCKET_TAG: "aws-k8s-1.34/v1.66.0"},
            "it was baked with aws-k8s-1.34/v1.66.0, the nodes have aws-k8s-1.35/v1.66.0",
        ),
        (
            {image_cache.SNAPSHOTTER_TAG: "overlayfs"},
            "its images were not unpacked by soci, so nodes delete them",
        ),
    ],
)
def test_what_the_plan_has_changed_makes_it_stale(
    account: Account, tags: dict[str, str], remark: str
) -> None:
    found = status(account, take(account, {**TAGS, **tags}))
    assert (found.state, found.remarks) == ("stale", (f"{remark}; bake again",))


def test_nobody_knows_what_is_on_a_stranger_s_snapshot(account: Account) -> None:
    found = status(account, take(account, {}))
    assert found.state == "stale"
    assert found.remarks == ("it was not baked by this library, so its content is unknown",)


def test_one_that_there_is_not_is_unusable(account: Account) -> None:
    found = status(account, "snap-0a1b2c3d4e5f60718")
    assert found.state == "unusable"
    assert found.remarks == ("snap-0a1b2c3d4e5f60718 does not exist in us-west-2, so no node starts",)


def test_one_that_is_larger_than_the_disk_is_unusable(account: Account) -> None:
    named = take(account, size=300)
    assert status(account, named, size_gib=300).state == "current"
    found = status(account, named)
    assert found.state == "unusable"
    assert found.remarks == (
        "it has 300 GiB, the pool's disk.sizeGib is 200, so no node starts; set it to 300, or bake again",
    )


@pytest.fixture
def says(account: Account, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Let EC2 say more of each snapshot than moto does."""

    def say(**fields: str) -> None:
        ec2 = account.client("ec2")
        describe = ec2.describe_snapshots
        answers = lambda **asked: {  # noqa: E731 - one expression
            "Snapshots": [each | fields for each in describe(**asked)["Snapshots"]]
        }
        monkeypatch.setattr(ec2, "describe_snapshots", answers)

    return say


@pytest.mark.parametrize("state", ["pending", "error"])
def test_one_that_is_not_complete_is_unusable(
    account: Account, says: Callable[..., None], state: str
) -> None:
    named = take(account)
    says(State=state)
    found = status(account, named)
    assert found.state == "unusable"
    assert found.remarks == (f"it is {state}, not completed, so no node starts",)


def test_a_key_of_one_s_own_needs_rights(account: Account, says: Callable[..., None]) -> None:
    key = account.client("kms").create_key()["KeyMetadata"]["Arn"]
    named = take(account)
    says(KmsKeyId=key)
    found = status(account, named)
    assert found.state == "current"
    [remark] = found.remarks
    assert remark.startswith(f"it is encrypted with {key}: the key policy must let Karpenter's role")


def test_a_key_of_aws_needs_none(account: Account, says: Callable[..., None]) -> None:
    named = take(account)
    kms = account.client("kms")
    metadata = b'{"KeyMetadata": {"KeyId": "k", "KeyManager": "AWS"}}'
    Faults((200, metadata)).into(kms, "DescribeKey")
    says(KmsKeyId="arn:aws:kms:us-west-2:123456789012:key/k")
    assert status(account, named).remarks == ()


def test_a_key_that_cannot_be_looked_at_is_told(account: Account, says: Callable[..., None]) -> None:
    named = take(account)
    Faults(json_error("AccessDeniedException", "not yours")).into(account.client("kms"), "DescribeKey")
    says(KmsKeyId="key-1")
    [remark] = status(account, named).remarks
    assert remark.startswith("its key key-1 could not be checked: An error occurred (AccessDeniedException)")


def test_what_ec2_refuses_is_no_verdict(account: Account) -> None:
    named = take(account)
    Faults(ec2_error("UnauthorizedOperation", status=403)).into(account.client("ec2"), "DescribeSnapshots")
    with pytest.raises(ClientError, match="UnauthorizedOperation"):
        status(account, named)
