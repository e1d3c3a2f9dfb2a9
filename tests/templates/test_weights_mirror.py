"""A mirrored model: who may write the copy, who may read it, and in which order."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.templates.conftest import Synthesise
from tests.templates.support import Templates, statements, text

STACK = "Model-qwen3-8b"
COMMIT = "0123456789abcdef0123456789abcdef01234567"
HUB_ARN = "arn:aws:secretsmanager:us-west-2:111122223333:secret:hub-AbCdEf"
BUCKET = "${try-Data.WeightsBucketName}"
COPY = f"arn:aws:s3:::{BUCKET}/huggingface/Qwen/Qwen3-8B/{COMMIT}"


def mirrored(**weights: Any) -> Any:
    section = {"huggingFace": "Qwen/Qwen3-8B", "revision": COMMIT, "mirror": {}, **weights}
    return lambda spec: spec["models"][0].update(weights=section)


@pytest.fixture(scope="module")
def templates(synthesise: Synthesise) -> Templates:
    return synthesise(mirrored(tokenSecretArn=HUB_ARN))


def rights(templates: Templates, service_account: str) -> dict[str, dict[str, Any]]:
    """Return the statements of a service account's role by their id."""
    resources = templates.by_stack[STACK]["Resources"]
    [association] = [
        properties
        for properties in templates.properties("AWS::EKS::PodIdentityAssociation", STACK)
        if properties["ServiceAccount"] == service_account
    ]
    role = resources[association["RoleArn"]["Fn::GetAtt"][0]]
    return {statement["Sid"]: statement for statement in statements(role)}


def test_the_mirror_writes_below_the_commits_prefix_alone(templates: Templates) -> None:
    allowed = rights(templates, "qwen3-8b.weights")
    assert allowed["WriteWeights"]["Action"] == ["s3:AbortMultipartUpload", "s3:PutObject"]
    assert [text(each) for each in allowed["WriteWeights"]["Resource"]] == [f"{COPY}/*", f"{COPY}.json"]
    assert (allowed["DeleteManifest"]["Action"], text(allowed["DeleteManifest"]["Resource"])) == (
        "s3:DeleteObject",
        f"{COPY}.json",
    )
    assert allowed["EncryptWeights"]["Action"] == "kms:GenerateDataKey"
    assert allowed["ReadToken"]["Resource"] == HUB_ARN


def test_workers_read_the_copy_and_neither_write_it_nor_read_the_token(templates: Templates) -> None:
    allowed = rights(templates, "qwen3-8b-main-k8s-service-discovery")
    assert allowed.keys() == {"ListWeights", "ReadWeights", "DecryptWeights"}
    assert [text(each) for each in allowed["ReadWeights"]["Resource"]] == [f"{COPY}/*", f"{COPY}.json"]
    listed = allowed["ListWeights"]["Condition"]["StringLike"]["s3:prefix"]
    assert listed == [f"huggingface/Qwen/Qwen3-8B/{COMMIT}/*", f"huggingface/Qwen/Qwen3-8B/{COMMIT}.json"]


def test_the_release_ends_at_once_and_comes_before_the_workers(templates: Templates) -> None:
    releases = templates.charts(STACK)
    assert list(releases) == ["qwen3-8b.weights", "qwen3-8b-main"]
    assert not {"Wait", "Atomic"} & releases["qwen3-8b.weights"]["Properties"].keys()
    [mirror] = [
        name
        for name, resource in templates.by_stack[STACK]["Resources"].items()
        if resource.get("Properties", {}).get("Release") == "qwen3-8b.weights"
    ]
    assert mirror in releases["qwen3-8b-main"]["DependsOn"]


def test_both_releases_are_given_the_bucket_that_the_data_stack_names(templates: Templates) -> None:
    for release in templates.charts(STACK).values():
        assert json.loads(text(release["Properties"]["Values"]))["weightsBucket"] == BUCKET
    [output] = [
        output
        for name, output in templates.by_stack["Data"]["Outputs"].items()
        if name == "WeightsBucketName"
    ]
    bucket = templates.by_stack["Data"]["Resources"][output["Value"]["Ref"]]
    assert bucket["Type"] == "AWS::S3::Bucket"
    assert bucket["Properties"]["BucketEncryption"]


def test_the_data_stack_is_deployed_before(templates: Templates) -> None:
    def before(stack: str) -> set[str]:
        direct = {
            name.split("-", 1)[1]
            for name in templates.artifacts[stack].get("dependencies", [])
            if not name.endswith(".assets")
        }
        return direct.union(*(before(name) for name in direct))

    assert "Data" in before(STACK)


def test_the_token_of_a_mirror_needs_the_secrets_add_on(templates: Templates) -> None:
    add_ons = {properties["AddonName"] for properties in templates.properties("AWS::EKS::Addon", "Cluster")}
    assert "aws-secrets-store-csi-driver-provider" in add_ons


def test_a_public_model_is_mirrored_without_secrets(synthesise: Synthesise) -> None:
    allowed = rights(synthesise(mirrored()), "qwen3-8b.weights")
    assert "ReadToken" not in allowed
