"""A grant that allows an action or a resource more than it says turns these tests red."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_stepfunctions as sfn
from aws_cdk.assertions import Template

from inference_blueprints.resources import root
from inference_constructs.batch.batch_shard_queue import BatchShardQueue
from inference_constructs.batch.batch_store import BatchStore
from inference_constructs.batch.model_worker import ModelWorker
from inference_constructs.batch.team_isolation import TeamInputs
from inference_constructs.eks.pod_identity import PodIdentity
from inference_constructs.signals.signal_access import SignalAccess
from inference_constructs.storage.buckets import CacheBucket

REGION, ACCOUNT = "us-west-2", "111122223333"
QUEUE = "${Shards.Arn}"
KEY = "${Key.Arn}"
MACHINE = "${Machine}"
CACHE = "${Cache.Arn}"
JOBS = "arn:aws:s3:::objects"
TABLES = f"arn:aws:dynamodb:{REGION}:{ACCOUNT}:table"
ELASTICACHE = f"arn:aws:elasticache:{REGION}:{ACCOUNT}"
USE_KEY = ["kms:Decrypt", "kms:GenerateDataKey"]
WRITE_JOBS = ["s3:GetObject", "s3:PutObject", "s3:AbortMultipartUpload"]
ANSWER = ["states:SendTaskSuccess", "states:SendTaskFailure", "states:SendTaskHeartbeat"]
CONSUME = ["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:ChangeMessageVisibility"]
S3 = "arn:aws:s3::"
IN_S3 = {"Fn::Join": ["", [f"s3.{REGION}.", {"Ref": "AWS::URLSuffix"}]]}
#: The jobs of the worker's model, and those of every model from an earlier release.
OF_MODEL = [f"batch_{sha256(b'qwen3-8b').hexdigest()[:8]}{'?' * 32}", f"batch_{'?' * 32}"]
LIST_JOBS = {"StringLike": {"s3:prefix": ["jobs/*"]}}

DEFINITION = '{"StartAt": "Done", "States": {"Done": {"Type": "Succeed"}}}'

#: Actions, resources and conditions of a statement.
Permission = tuple[list[str], list[str], dict[str, Any]]


@dataclass(frozen=True)
class Granting:
    """One of each construct, in a stack of its own."""

    stack: cdk.Stack
    queue: BatchShardQueue
    store: BatchStore
    signals: SignalAccess
    cache: CacheBucket
    worker: ModelWorker


@pytest.fixture(scope="module")
def granting() -> Granting:
    context = json.loads((root() / "cdk.json").read_text("utf-8"))["context"]
    stack = cdk.Stack(cdk.App(context=context), "Stack", env=cdk.Environment(account=ACCOUNT, region=REGION))
    key = kms.Key(stack, "Key")
    queue = BatchShardQueue(stack, "Shards")
    store = BatchStore("records", "progress", "objects", key, "/jobs/")
    machine = sfn.StateMachine(stack, "Machine", definition_body=sfn.DefinitionBody.from_string(DEFINITION))
    return Granting(
        stack=stack,
        queue=queue,
        store=store,
        signals=SignalAccess(
            host="cache.example",
            port="6379",
            cache_name="signals",
            reader="signals-reader",
            writer="signals-writer",
            history_bucket_name="history",
            encryption_key=key,
            vpc=ec2.Vpc.from_vpc_attributes(stack, "Vpc", vpc_id="vpc-1", availability_zones=["us-west-2a"]),
            vpc_cidr="10.0.0.0/16",
        ),
        cache=CacheBucket(stack, "Cache", encryption_key=key, expire_days=1),
        worker=ModelWorker(
            model="qwen3-8b",
            queue=queue,
            environment={},
            store=store,
            state_machine=machine,
            inputs=TeamInputs(stack, ["s3://ads-data/a/", "s3://ads-data/b/", "s3://search/x/"]),
        ),
    )


def permissions(granting: Granting, *grants: iam.Grant) -> list[Permission]:
    """Return what grants allow, with resources of the stack as ``${Name}`` without CDK's hash."""
    found = []
    for grant in grants:
        assert not grant.resource_statements, "the policy of the resource is changed as well"
        for statement in grant.principal_statements:
            document = granting.stack.resolve(statement.to_statement_json())
            assert document["Effect"] == "Allow"
            found.append(
                (
                    _listed(document["Action"]),
                    [_named(resource) for resource in _listed(document["Resource"])],
                    document.get("Condition", {}),
                )
            )
    return found


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _named(value: Any) -> str:
    match value:
        case {"Fn::GetAtt": [name, attribute]}:
            return f"${{{name[:-8]}.{attribute}}}"
        case {"Ref": name}:
            return f"${{{name[:-8]}}}"
        case {"Fn::Join": ["", parts]}:
            return "".join(_named(part) for part in parts)
    return str(value)


Case = tuple[Callable[[Granting, iam.IGrantable], iam.Grant], list[Permission]]

CASES: dict[str, Case] = {
    "queue: consume": (lambda on, to: on.queue.grant_consume(to), [(CONSUME, [QUEUE], {})]),
    "queue: send": (lambda on, to: on.queue.grant_send(to), [(["sqs:SendMessage"], [QUEUE], {})]),
    "queue: read attributes": (
        lambda on, to: on.queue.grant_read_attributes(to),
        [(["sqs:GetQueueAttributes"], [QUEUE], {})],
    ),
    "store: objects": (
        lambda on, to: on.store.grant_objects(to, "files/*", "s3:GetObject"),
        [(["s3:GetObject"], [f"{JOBS}/files/*"], {})],
    ),
    "store: list": (
        lambda on, to: on.store.grant_list(to, "jobs/*"),
        [(["s3:ListBucket"], [JOBS], LIST_JOBS)],
    ),
    "store: records": (
        lambda on, to: on.store.grant_records(to, "dynamodb:GetItem", "dynamodb:Query"),
        [
            (
                ["dynamodb:GetItem", "dynamodb:Query"],
                [
                    f"{TABLES}/records",
                    f"{TABLES}/records/index/byTeam",
                    f"{TABLES}/records/index/byState",
                ],
                {},
            )
        ],
    ),
    "store: progress": (
        lambda on, to: on.store.grant_progress(to, "dynamodb:PutItem"),
        [(["dynamodb:PutItem"], [f"{TABLES}/progress"], {})],
    ),
    "store: decrypt": (lambda on, to: on.store.grant_decrypt(to), [(["kms:Decrypt"], [KEY], {})]),
    "store: encrypt and decrypt": (
        lambda on, to: on.store.grant_encrypt_decrypt(to),
        [(USE_KEY, [KEY], {})],
    ),
    "signals: read": (
        lambda on, to: on.signals.grant_read(to),
        [
            (
                ["elasticache:Connect"],
                [f"{ELASTICACHE}:serverlesscache:signals", f"{ELASTICACHE}:user:signals-reader"],
                {},
            )
        ],
    ),
    "signals: write": (
        lambda on, to: on.signals.grant_write(to),
        [
            (
                ["elasticache:Connect"],
                [f"{ELASTICACHE}:serverlesscache:signals", f"{ELASTICACHE}:user:signals-writer"],
                {},
            )
        ],
    ),
    "signals: write history": (
        lambda on, to: on.signals.grant_write_history(to),
        [(["s3:PutObject", "s3:AbortMultipartUpload"], ["arn:aws:s3:::history/signals/*"], {})],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_grant_allows_its_actions_on_its_resource_only(granting: Granting, name: str) -> None:
    role = iam.Role(granting.stack, f"Role {name}", assumed_by=iam.AccountRootPrincipal())
    grant, expected = CASES[name]
    assert permissions(granting, grant(granting, role)) == expected


def test_the_cache_is_used_below_its_bucket_and_its_key_through_s3_only(granting: Granting) -> None:
    role = iam.Role(granting.stack, "CacheRole", assumed_by=iam.AccountRootPrincipal())
    listing, objects, key = permissions(granting, granting.cache.grant_read_write(role))
    assert listing == (["s3:ListBucket"], [CACHE], {})
    assert objects == (
        ["s3:AbortMultipartUpload", "s3:DeleteObject", "s3:GetObject", "s3:PutObject"],
        [f"{CACHE}/*"],
        {},
    )
    assert key[:2] == (USE_KEY, [KEY])
    assert key[2]["StringEquals"]["kms:ViaService"]
    [context] = key[2]["StringLike"].values()
    assert [_named(each) for each in context] == [CACHE, f"{CACHE}/*"]


def test_pods_and_tasks_of_workers_have_the_same_permissions_and_no_others(granting: Granting) -> None:
    role = iam.Role(granting.stack, "TaskRole", assumed_by=iam.AccountRootPrincipal())
    pods = PodIdentity(
        granting.stack, "Pods", cluster_name="try", namespace="models", service_accounts=["worker"]
    )
    expected = [
        (CONSUME, [QUEUE], {}),
        (ANSWER, [MACHINE, f"{MACHINE}/*"], {}),
        (WRITE_JOBS, [f"{JOBS}/jobs/{each}/*" for each in OF_MODEL], {}),
        (
            ["s3:ListBucket"],
            [JOBS],
            {"StringLike": {"s3:prefix": [f"jobs/{each}/*" for each in OF_MODEL]}},
        ),
        (
            ["dynamodb:PutItem"],
            [f"{TABLES}/progress"],
            {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": OF_MODEL}},
        ),
        (USE_KEY, [KEY], {}),
        (["s3:GetObject"], [f"{S3}:ads-data/a/*", f"{S3}:ads-data/b/*", f"{S3}:search/x/*"], {}),
        (["s3:ListBucket"], [f"{S3}:ads-data"], {"StringLike": {"s3:prefix": ["a/*", "b/*"]}}),
        (["s3:ListBucket"], [f"{S3}:search"], {"StringLike": {"s3:prefix": ["x/*"]}}),
        (
            ["kms:Decrypt"],
            [f"arn:aws:kms:{REGION}:*:key/*"],
            {
                "StringEquals": {"kms:ViaService": IN_S3},
                "StringLike": {
                    "kms:EncryptionContext:aws:s3:arn": [
                        *(f"{S3}:ads-data", f"{S3}:ads-data/*", f"{S3}:search", f"{S3}:search/*")
                    ]
                },
            },
        ),
    ]
    assert permissions(granting, *granting.worker.grant_run(role)) == expected
    assert permissions(granting, *granting.worker.grant_run(pods)) == expected
    limited = replace(granting.worker, limited=True)
    assert permissions(granting, *limited.grant_run(role)) == [
        *expected,
        (
            ["dynamodb:GetItem"],
            [f"{TABLES}/records"],
            {"ForAllValues:StringEquals": {"dynamodb:LeadingKeys": ["ceiling#qwen3-8b"]}},
        ),
        (["sqs:GetQueueAttributes"], [QUEUE], {}),
    ]
    [inline] = [
        resource["Properties"]["Policies"]
        for name, resource in Template.from_stack(granting.stack).find_resources("AWS::IAM::Role").items()
        if name.startswith("PodsRole")
    ]
    statements = inline[0]["PolicyDocument"]["Statement"]
    assert [
        (each["Action"], [_named(resource) for resource in each["Resource"]], each.get("Condition", {}))
        for each in statements
    ] == expected
