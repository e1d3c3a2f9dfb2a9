"""What the functions of batch need of AWS, made in an emulation, and who may use it."""

from __future__ import annotations

import json
import os
from functools import cache
from pathlib import Path
from typing import Any

import boto3

REGION = "us-west-2"
ACCOUNT = "123456789012"
BUCKET = "batch-of-the-platform"
TABLE = "batch-jobs"
PROGRESS_TABLE = "batch-progress"
SEARCH = f"arn:aws:sts::{ACCOUNT}:assumed-role/Search/anna"
ADVERTS = f"arn:aws:sts::{ACCOUNT}:assumed-role/Adverts/otto"
NOBODY = f"arn:aws:sts::{ACCOUNT}:assumed-role/Nobody/eve"

CAPACITY = {
    "inputTokensPerSecond": 40_000,
    "outputTokensPerSecond": 8_000,
    "usdPerMillionInputTokens": 0.05,
    "usdPerMillionOutputTokens": 0.4,
}
CONFIGURATION: dict[str, Any] = {
    "platform": "chat",
    "queues": [
        {"name": "nightly", "model": "qwen3-8b", "priority": 10, "deadlineHours": 24, "capacity": CAPACITY}
    ],
    "teams": [
        {
            "name": "search",
            "principals": [f"arn:aws:iam::{ACCOUNT}:role/teams/Search"],
            "monthlyBudgetUsd": 1000,
            "dataPrefixes": ["s3://search-data/prompts/"],
        },
        {
            "name": "adverts",
            "principals": [f"arn:aws:iam::{ACCOUNT}:role/Adverts"],
            "monthlyBudgetUsd": 200,
            "dataPrefixes": ["s3://adverts-data/"],
        },
    ],
    "signals": [
        {"name": "product-captions", "team": "search", "ttlHours": 72},
        {"name": "topics", "team": "adverts", "ttlHours": 1.5},
    ],
}
#: As the stack makes it (`batch.jobs.record_table`).
TABLE_PROPERTIES: dict[str, Any] = {
    "TableName": TABLE,
    "BillingMode": "PAY_PER_REQUEST",
    "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
    "AttributeDefinitions": [
        {"AttributeName": name, "AttributeType": "S"} for name in ("id", "collection", "openState", "order")
    ],
    "GlobalSecondaryIndexes": [
        {
            "IndexName": index,
            "KeySchema": [
                {"AttributeName": key, "KeyType": "HASH"},
                {"AttributeName": "order", "KeyType": "RANGE"},
            ],
            "Projection": {"ProjectionType": "ALL"},
        }
        for index, key in (("byTeam", "collection"), ("byState", "openState"))
    ],
}


#: As the stack makes it (`batch.contracts.progress_items`).
PROGRESS_PROPERTIES: dict[str, Any] = {
    "TableName": PROGRESS_TABLE,
    "BillingMode": "PAY_PER_REQUEST",
    "KeySchema": [
        {"AttributeName": "job", "KeyType": "HASH"},
        {"AttributeName": "shard", "KeyType": "RANGE"},
    ],
    "AttributeDefinitions": [{"AttributeName": name, "AttributeType": "S"} for name in ("job", "shard")],
}


def client(service: str) -> Any:
    """Return a client for tests that prepare and look. Code under test makes its own.

    Those of the emulation in this process are made once: that takes as long as a short test.
    """
    if "AWS_ENDPOINT_URL" in os.environ:
        return boto3.client(service)
    return _client_in_process(service)


@cache
def _client_in_process(service: str) -> Any:
    secret = "none"  # noqa: S105 - the emulation takes any
    session = boto3.Session(aws_access_key_id="none", aws_secret_access_key=secret, region_name=REGION)
    return session.client(service)


def create(directory: Path, configuration: dict[str, Any] = CONFIGURATION) -> dict[str, str]:
    """Make the table, the bucket and a state machine, and return the functions' environment.

    Queues and teams are a file of the directory, as they are one beside the functions' code.
    """
    for properties in (TABLE_PROPERTIES, PROGRESS_PROPERTIES):
        client("dynamodb").create_table(**properties)
    client("s3").create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": REGION})
    machine = client("stepfunctions").create_state_machine(
        name="batch",
        definition='{"StartAt": "Run", "States": {"Run": {"Type": "Wait", "Seconds": 3600, "End": true}}}',
        roleArn=f"arn:aws:iam::{ACCOUNT}:role/machine",
    )
    return {
        "BATCH_TABLE": TABLE,
        "BATCH_PROGRESS_TABLE": PROGRESS_TABLE,
        "BATCH_BUCKET": BUCKET,
        "BATCH_STATE_MACHINE_ARN": machine["stateMachineArn"],
        "BATCH_CONFIGURATION": str(write_configuration(directory, configuration)),
    }


def write_configuration(directory: Path, configuration: dict[str, Any]) -> Path:
    """Write queues and teams into a directory, and return the file."""
    file = directory / "configuration.json"
    file.write_text(json.dumps(configuration), "utf-8")
    return file


def configuration_text() -> str:
    """Return the queues and teams as the functions read them."""
    return json.dumps(CONFIGURATION)


def executions(environment: dict[str, str]) -> list[dict[str, Any]]:
    """Return the name and input of every execution."""
    functions = client("stepfunctions")
    listed = functions.list_executions(stateMachineArn=environment["BATCH_STATE_MACHINE_ARN"])["executions"]
    details = [functions.describe_execution(executionArn=each["executionArn"]) for each in listed]
    return [
        {"name": each["name"], "status": each["status"], "input": json.loads(each["input"])}
        for each in details
    ]


def read_object(key: str) -> bytes:
    """Return what an object of the batch bucket holds."""
    content: bytes = client("s3").get_object(Bucket=BUCKET, Key=key)["Body"].read()
    return content


def list_keys(prefix: str) -> list[str]:
    """Return the keys of the batch bucket below a prefix."""
    listed = client("s3").list_objects_v2(Bucket=BUCKET, Prefix=prefix).get("Contents", [])
    return [entry["Key"] for entry in listed]
