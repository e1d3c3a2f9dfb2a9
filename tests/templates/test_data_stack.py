"""The stack that must survive everything else."""

from __future__ import annotations

from typing import Any

import pytest

from tests.templates.conftest import Synthesise
from tests.templates.support import Templates, statements


def test_weights_are_private_versioned_and_under_our_key(base_templates: Templates) -> None:
    (bucket,) = [b for b in base_templates.properties("AWS::S3::Bucket") if "LoggingConfiguration" in b]
    (rule,) = bucket["BucketEncryption"]["ServerSideEncryptionConfiguration"]
    assert rule["BucketKeyEnabled"] is True
    assert rule["ServerSideEncryptionByDefault"]["SSEAlgorithm"] == "aws:kms"
    assert rule["ServerSideEncryptionByDefault"]["KMSMasterKeyID"]["Fn::GetAtt"][0].startswith("Key")
    assert bucket["VersioningConfiguration"] == {"Status": "Enabled"}


def test_no_bucket_is_public_or_speaks_plain_http(base_templates: Templates) -> None:
    buckets = base_templates.properties("AWS::S3::Bucket")
    assert len(buckets) == 2
    for bucket in buckets:
        assert set(bucket["PublicAccessBlockConfiguration"].values()) == {True}
        assert len(bucket["PublicAccessBlockConfiguration"]) == 4
    policies = base_templates.resources("AWS::S3::BucketPolicy")
    plain = {"Bool": {"aws:SecureTransport": "false"}}
    denied = [s for policy in policies for s in statements(policy) if s.get("Condition") == plain]
    assert [s["Effect"] for s in denied] == ["Deny", "Deny"]


def test_objects_of_batch_expire_by_prefix(synthesise: Synthesise) -> None:
    def with_batch(spec: dict[str, Any]) -> None:
        rates = {"usdPerMillionInputTokens": 1, "usdPerMillionOutputTokens": 1}
        team = {"name": "ads", "principals": ["arn:aws:iam::111122223333:role/A"], "monthlyBudgetUsd": 1}
        queue = {"name": "nightly", "model": "qwen3-8b", "rates": rates}
        spec.update(teams=[team], batch={"queues": [queue], "keepDays": 9})

    [rules] = [
        each["LifecycleConfiguration"]["Rules"]
        for each in synthesise(with_batch).properties("AWS::S3::Bucket", "Data")
        if "NotificationConfiguration" in each
    ]
    assert {rule["Prefix"]: rule["ExpirationInDays"] for rule in rules if "Prefix" in rule} == {
        "jobs/": 9,
        "files/": 31,
        "uploads/": 2,
        "nightly/": 9,
    }
    [versions] = [
        rule["NoncurrentVersionExpiration"] for rule in rules if "NoncurrentVersionExpiration" in rule
    ]
    assert versions == {"NoncurrentDays": 1}
    assert [rule for rule in rules if rule.get("ExpiredObjectDeleteMarker")]
    assert {rule["Status"] for rule in rules} == {"Enabled"}


def test_the_key_rotates(base_templates: Templates) -> None:
    assert base_templates.only("AWS::KMS::Key")["EnableKeyRotation"] is True


@pytest.mark.parametrize(("removal", "policy"), [("retain", "Retain"), ("destroy", "Delete")])
def test_the_blueprint_decides_what_a_destroy_leaves(
    synthesise: Synthesise, removal: str, policy: str
) -> None:
    templates = synthesise(lambda spec: spec["environment"].update(dataRemoval=removal))
    for resource_type in ("AWS::KMS::Key", "AWS::S3::Bucket"):
        for resource in templates.resources(resource_type):
            assert (resource["DeletionPolicy"], resource["UpdateReplacePolicy"]) == (policy, policy)
    emptied = len(templates.resources("Custom::S3AutoDeleteObjects"))
    assert emptied == (2 if removal == "destroy" else 0)
