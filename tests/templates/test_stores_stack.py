"""The signal store: who may read and write it, what is kept of it, and what publishing may do."""

from __future__ import annotations

import json
import re
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_kms as kms

from inference_constructs.signals.signal_cache import SignalCache
from inference_contracts.signal_rows import history_key
from tests.templates.conftest import Synthesise
from tests.templates.support import Templates, listed, statements, text
from tests.templates.test_batch_stack import definition, functions, with_batch

HANDLER = "batch.publication.handler.handle"


def with_signals(spec: dict[str, Any]) -> None:
    with_batch(spec)
    spec["signalStore"] = {
        "valkey": {"maxGb": 200},
        "ttlHours": 48,
        "historyDays": 30,
        "signals": [
            {"name": "captions", "team": "ads", "ttlHours": 12},
            {"name": "topics", "team": "ads"},
        ],
    }


@pytest.fixture(scope="module")
def signals(synthesise: Synthesise) -> Templates:
    return synthesise(with_signals)


@pytest.fixture(scope="module")
def publisher(signals: Templates) -> dict[str, Any]:
    return functions(signals)[HANDLER]


def rights(templates: Templates, publisher: dict[str, Any]) -> dict[str, list[str]]:
    """Resources by action of the policy that the function's role has."""
    role = publisher["Role"]["Fn::GetAtt"][0]
    [policy] = [
        resource
        for resource in templates.resources("AWS::IAM::Policy", "Batch")
        if {"Ref": role} in resource["Properties"]["Roles"]
    ]
    found: dict[str, list[str]] = {}
    for statement in statements(policy):
        for action in listed(statement["Action"]):
            found.setdefault(action, []).extend(text(each) for each in listed(statement["Resource"]))
    return found


def test_without_the_section_there_is_no_store_and_nothing_that_publishes(synthesise: Synthesise) -> None:
    templates = synthesise(with_batch)
    assert "Stores" not in templates.by_stack
    assert HANDLER not in functions(templates)
    assert "Publications" not in definition(templates)["States"]
    assert not templates.resources("AWS::Glue::Table")


def test_the_stack_is_protected_and_stands_on_the_network(signals: Templates) -> None:
    artifact = signals.artifacts["Stores"]
    assert artifact["properties"]["terminationProtection"] is True
    assert {"try-Data", "try-Network"} <= set(artifact["dependencies"])
    assert "try-Stores" in signals.artifacts["Batch"]["dependencies"]


def test_the_cache_is_private_bounded_and_under_our_key(signals: Templates) -> None:
    cache = signals.only("AWS::ElastiCache::ServerlessCache", "Stores")
    assert (cache["Engine"], cache["MajorEngineVersion"]) == ("valkey", "8")
    assert cache["CacheUsageLimits"] == {"DataStorage": {"Maximum": 200, "Unit": "GB"}}
    assert len(cache["SubnetIds"]) in (2, 3)
    assert all("Private" in text(subnet) for subnet in cache["SubnetIds"])
    assert "Key" in text(cache["KmsKeyId"])
    assert cache["SnapshotRetentionLimit"] >= 1
    group = signals.only("AWS::EC2::SecurityGroup", "Stores")
    ingress = group["SecurityGroupIngress"]
    assert {rule["CidrIp"] for rule in ingress} == {"10.0.0.0/16"}
    assert sorted(rule["FromPort"] for rule in ingress) == [6379, 6380]


def test_users_are_of_iam_and_there_is_no_default_one(signals: Templates) -> None:
    users = {each["UserName"]: each for each in signals.properties("AWS::ElastiCache::User", "Stores")}
    group = signals.only("AWS::ElastiCache::UserGroup", "Stores")
    assert len(users) == len(group["UserIds"]) == 2
    for name, user in users.items():
        assert user["UserId"] == name  # What IAM asks of its users.
        assert len(name) <= 40
        assert name != "default"
        assert user["AuthenticationMode"] == {"Type": "iam"}
        words = user["AccessString"].split()
        assert words[:3] == ["on", "~signal:*", "-@all"]
        assert not {"+@all", "allkeys", "~*", "nopass"} & set(words)
    [reader] = [user["AccessString"] for name, user in users.items() if name.endswith("reader")]
    assert not {"+hset", "+eval", "+evalsha", "+expireat", "+del"} & set(reader.split())


def test_names_are_within_what_elasticache_takes_however_long_the_platform_s_is() -> None:
    stack = cdk.Stack(cdk.App(), f"{'a' * 40}-Stores")
    cache = SignalCache(
        stack,
        "Signals",
        vpc=ec2.Vpc(stack, "Vpc"),
        vpc_cidr="10.0.0.0/16",
        encryption_key=kms.Key(stack, "Key"),
        max_gb=1,
        retain=True,
    )
    for name in (cache.cache_name, cache.reader, cache.writer):
        assert re.fullmatch(r"[a-z]([a-z0-9]|-(?!-)){0,38}[a-z0-9]", name), name


@pytest.mark.parametrize(("removal", "leaves"), [("retain", True), ("destroy", False)])
def test_what_a_removal_leaves(synthesise: Synthesise, removal: str, *, leaves: bool) -> None:
    def change(spec: dict[str, Any]) -> None:
        with_signals(spec)
        spec["environment"]["dataRemoval"] = removal

    templates = synthesise(change)
    cache = templates.only("AWS::ElastiCache::ServerlessCache", "Stores")
    assert ("FinalSnapshotName" in cache) is leaves
    if leaves:
        # A second platform of that name leaves a second snapshot.
        assert "AWS::StackId" in json.dumps(cache["FinalSnapshotName"])
    [bucket] = [
        resource
        for logical_id, resource in templates.by_stack["Data"]["Resources"].items()
        if logical_id.startswith("SignalHistory") and resource["Type"] == "AWS::S3::Bucket"
    ]
    assert bucket["DeletionPolicy"] == ("Retain" if leaves else "Delete")


def test_the_table_has_the_columns_of_what_is_written_and_needs_no_crawler(signals: Templates) -> None:
    table = signals.only("AWS::Glue::Table", "Data")["TableInput"]
    columns = {each["Name"] for each in table["StorageDescriptor"]["Columns"]}
    assert columns == {"key", "value", "version", "model", "prompt_hash", "time", "expires", "job"}
    parameters = table["Parameters"]
    assert parameters["projection.enabled"] == "true"
    assert parameters["projection.name.values"] == "captions,topics"
    key = history_key("captions", 1_800_000_000_000, "batch_1", "000001")
    template = text(parameters["storage.location.template"]).split("/", 3)[3]
    folder = template.replace("${name}", "captions").replace("${date}", "2027-01-15")
    assert key == f"{folder}batch_1-000001.jsonl.gz"
    assert [each["Name"] for each in table["PartitionKeys"]] == ["name", "date"]


def test_queries_leave_encrypted_results_alone(signals: Templates) -> None:
    workgroup = signals.only("AWS::Athena::WorkGroup", "Data")
    configuration = workgroup["WorkGroupConfiguration"]
    assert configuration["EnforceWorkGroupConfiguration"] is True
    encryption = configuration["ResultConfiguration"]["EncryptionConfiguration"]
    assert encryption["EncryptionOption"] == "SSE_KMS"
    assert "Key" in text(encryption["KmsKey"])


def test_history_goes_by_itself(signals: Templates) -> None:
    [bucket] = [
        resource["Properties"]
        for logical_id, resource in signals.by_stack["Data"]["Resources"].items()
        if logical_id.startswith("SignalHistory") and resource["Type"] == "AWS::S3::Bucket"
    ]
    rules = {rule.get("Prefix"): rule for rule in bucket["LifecycleConfiguration"]["Rules"]}
    assert rules["signals/"]["ExpirationInDays"] == 30
    assert rules["query-results/"]["ExpirationInDays"] <= 30
    assert set(bucket["PublicAccessBlockConfiguration"].values()) == {True}


def test_functions_know_signals_their_teams_and_hours(signals: Templates) -> None:
    environment = functions(signals)["batch.api.handler.handle"]["Environment"]["Variables"]
    assert signals.asset_document(environment["BATCH_CONFIGURATION"])["signals"] == [
        {"name": "captions", "team": "ads", "ttlHours": 12},
        {"name": "topics", "team": "ads", "ttlHours": 48},
    ]


def test_publishing_follows_the_merge_and_ends_the_job_whatever_becomes_of_it(signals: Templates) -> None:
    machine = definition(signals)
    states = machine["States"]
    assert states["Merge"]["Next"] == "IsMerged"
    assert states["IsMerged"]["Choices"][0]["Next"] == "HasPublications"
    assert states["HasPublications"]["Default"] == states["Publications"]["Next"] == "Finish"
    assert states["Publications"]["ToleratedFailurePercentage"] == 100
    child, failed = states["Publications"]["ItemProcessor"]["States"].values()
    assert failed == {"Type": "Succeed"}
    assert [each["ErrorEquals"] for each in child["Catch"]] == [["States.ALL"]]
    # The first retrier that fits decides, whatever the error is: of the function, or of Lambda.
    [retry] = child["Retry"]
    assert retry["ErrorEquals"] == ["States.ALL"]
    delays = [
        min(retry["MaxDelaySeconds"], retry["IntervalSeconds"] * retry["BackoffRate"] ** attempt)
        for attempt in range(retry["MaxAttempts"])
    ]
    assert sum(delays) > 20 * 60


def test_the_publisher_runs_in_private_subnets_and_reaches_the_cache_and_s3_alone(
    signals: Templates, publisher: dict[str, Any]
) -> None:
    assert all("Private" in text(subnet) for subnet in publisher["VpcConfig"]["SubnetIds"])
    [group_id] = publisher["VpcConfig"]["SecurityGroupIds"]
    group = signals.by_stack["Batch"]["Resources"][group_id["Fn::GetAtt"][0]]["Properties"]
    assert "SecurityGroupIngress" not in group
    egress = {(rule["CidrIp"], rule["FromPort"], rule["ToPort"]) for rule in group["SecurityGroupEgress"]}
    assert egress == {("10.0.0.0/16", 6379, 6379), ("0.0.0.0/0", 443, 443)}


def test_the_publisher_may_write_signals_and_their_history_and_nothing_else(
    signals: Templates, publisher: dict[str, Any]
) -> None:
    found = rights(signals, publisher)
    cache = signals.only("AWS::ElastiCache::ServerlessCache", "Stores")["ServerlessCacheName"]
    connect = [each.rsplit(":", 2)[1:] for each in found["elasticache:Connect"]]
    assert connect == [["serverlesscache", cache], ["user", f"{cache}-writer"]]
    assert publisher["Environment"]["Variables"]["SIGNALS_USER"] == f"{cache}-writer"
    writes = [each.split("/", 1)[1] for each in found["s3:PutObject"]]
    assert sorted(writes) == ["jobs/*/published/*.json", "signals/*"]
    reads = [each.split("/", 1)[1] for each in found["s3:GetObject"]]
    assert sorted(reads) == ["jobs/*/parts/*/output.jsonl", "jobs/*/request.json", "jobs/*/shards/*.jsonl"]
    assert {action.split(":")[0] for action in found} == {"ec2", "elasticache", "kms", "logs", "s3"}


def test_interfaces_are_lambda_s_business_and_not_its_code_s(
    signals: Templates, publisher: dict[str, Any]
) -> None:
    allowed = {action for action in rights(signals, publisher) if action.startswith("ec2:")}
    [policy] = [
        each
        for each in signals.properties("AWS::IAM::ManagedPolicy", "Batch")
        if publisher["Role"]["Fn::GetAtt"][0] in json.dumps(each["Roles"])
    ]
    [statement] = policy["PolicyDocument"]["Statement"]
    assert statement["Effect"] == "Deny"
    assert set(statement["Action"]) == allowed
    assert "lambda:SourceFunctionArn" in statement["Condition"]["ArnEquals"]
