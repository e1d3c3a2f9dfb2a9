"""KV cache that a model's workers share in S3: its bucket, and who may use it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.templates.conftest import Synthesise
from tests.templates.support import Templates, statements, text

#: What pods that share KV cache may do, statement by statement.
CACHE_ACTIONS = [
    ["s3:ListBucket"],
    ["s3:AbortMultipartUpload", "s3:DeleteObject", "s3:GetObject", "s3:PutObject"],
    ["kms:Decrypt", "kms:GenerateDataKey"],
]
STACK = "Model-qwen3-8b"
HUB_ARN = "arn:aws:secretsmanager:us-west-2:111122223333:secret:hub-AbCdEf"


def sharing(**weights: Any) -> Any:
    def change(spec: dict[str, Any]) -> None:
        spec["pools"][0]["instanceTypes"] = ["g6e.8xlarge"]
        spec["models"][0]["kvCache"] = {"hostMemoryGib": 40, "shared": {"s3": {"expireDays": 5}}}
        spec["models"][0]["weights"].update(revision="v1", **weights)

    return change


@pytest.fixture(scope="module")
def templates(synthesise: Synthesise) -> Templates:
    return synthesise(sharing(tokenSecretArn=HUB_ARN))


def bucket_of(templates: Templates) -> tuple[str, dict[str, Any]]:
    """Return the bucket's logical id and itself."""
    [found] = [
        (name, resource)
        for name, resource in templates.by_stack[STACK]["Resources"].items()
        if resource["Type"] == "AWS::S3::Bucket"
    ]
    return found


def test_the_bucket_is_private_under_our_key_and_forgets(templates: Templates) -> None:
    _, bucket = bucket_of(templates)
    properties = bucket["Properties"]
    [rule] = properties["BucketEncryption"]["ServerSideEncryptionConfiguration"]
    assert rule["ServerSideEncryptionByDefault"]["SSEAlgorithm"] == "aws:kms"
    assert "Data" in json.dumps(rule["ServerSideEncryptionByDefault"]["KMSMasterKeyID"])
    assert set(properties["PublicAccessBlockConfiguration"].values()) == {True}
    [expiry] = properties["LifecycleConfiguration"]["Rules"]
    assert (expiry["ExpirationInDays"], expiry["Status"]) == (5, "Enabled")


def test_the_bucket_goes_with_the_model_and_holds_no_older_versions(templates: Templates) -> None:
    _, bucket = bucket_of(templates)
    assert bucket["DeletionPolicy"] == "Delete"
    assert "VersioningConfiguration" not in bucket["Properties"]
    assert templates.properties("Custom::S3AutoDeleteObjects", STACK)


def test_the_pods_one_role_may_use_this_bucket_alone_beside_the_token(templates: Templates) -> None:
    name, _ = bucket_of(templates)
    [association] = templates.properties("AWS::EKS::PodIdentityAssociation", STACK)
    role = templates.by_stack[STACK]["Resources"][association["RoleArn"]["Fn::GetAtt"][0]]
    assert len(list(statements(role))) == len(CACHE_ACTIONS) + 2
    assert {statement.get("Sid") for statement in statements(role)} == {None, "ReadToken", "DecryptToken"}
    [listing, objects, key] = [statement for statement in statements(role) if "Sid" not in statement]
    assert [listing["Action"], objects["Action"], key["Action"]] == CACHE_ACTIONS
    assert listing["Resource"] == [{"Fn::GetAtt": [name, "Arn"]}]
    assert objects["Resource"] == [{"Fn::Join": ["", [{"Fn::GetAtt": [name, "Arn"]}, "/*"]]}]
    assert "Key" in json.dumps(key["Resource"])
    assert name in json.dumps(key["Condition"])


def test_the_workers_are_given_the_buckets_name(templates: Templates) -> None:
    name, _ = bucket_of(templates)
    [release] = templates.charts(STACK).values()
    assert json.loads(text(release["Properties"]["Values"]))["kvCacheBucket"] == f"${{{name}}}"


def test_another_commit_has_another_bucket(templates: Templates, synthesise: Synthesise) -> None:
    def newer(spec: dict[str, Any]) -> None:
        sharing(tokenSecretArn=HUB_ARN)(spec)
        spec["models"][0]["weights"]["revision"] = "v2"

    assert bucket_of(synthesise(newer))[0] != bucket_of(templates)[0]


def test_public_weights_need_no_rights_but_those(synthesise: Synthesise) -> None:
    templates = synthesise(sharing())
    [association] = templates.properties("AWS::EKS::PodIdentityAssociation", STACK)
    role = templates.by_stack[STACK]["Resources"][association["RoleArn"]["Fn::GetAtt"][0]]
    assert [statement["Action"] for statement in statements(role)] == CACHE_ACTIONS
