"""An update of a table keeps its items, and a table with another key is another one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.local.emulator.conftest import REGION, ApplyStack

Client = Callable[[str], Any]


def table(key: str = "id", **of_replica: Any) -> dict[str, tuple[str, dict[str, Any]]]:
    """Return a table without a name, as `TableV2` of CDK makes it."""
    properties = {
        "BillingMode": "PAY_PER_REQUEST",
        "KeySchema": [{"AttributeName": key, "KeyType": "HASH"}],
        "AttributeDefinitions": [{"AttributeName": key, "AttributeType": "S"}],
        "Replicas": [{"Region": REGION, **of_replica}],
    }
    return {"Table": ("AWS::DynamoDB::GlobalTable", properties)}


def policy(role: str) -> dict[str, Any]:
    denial = {
        "Effect": "Deny",
        "Principal": "*",
        "Action": "dynamodb:*",
        "Resource": "*",
        "Condition": {"ArnLike": {"aws:PrincipalArn": f"arn:aws:iam::123456789012:role/{role}"}},
    }
    return {"PolicyDocument": {"Version": "2012-10-17", "Statement": [denial]}}


def name_of(client: Client, stack: str) -> str:
    name: str = client("cloudformation").describe_stack_resource(StackName=stack, LogicalResourceId="Table")[
        "StackResourceDetail"
    ]["PhysicalResourceId"]
    return name


def test_a_new_policy_keeps_the_items(client: Client, apply_stack: ApplyStack) -> None:
    apply_stack("kept-policy", table(ResourcePolicy=policy("one")))
    name = name_of(client, "kept-policy")
    client("dynamodb").put_item(TableName=name, Item={"id": {"S": "a"}})
    changed = apply_stack("kept-policy", table(ResourcePolicy=policy("two")))
    assert changed.status == "UPDATE_COMPLETE", changed
    assert name_of(client, "kept-policy") == name
    assert client("dynamodb").scan(TableName=name)["Items"] == [{"id": {"S": "a"}}]


def test_another_key_replaces_the_table(client: Client, apply_stack: ApplyStack) -> None:
    """As on AWS: a test of an upgrade must see that items would be lost."""
    apply_stack("other-key", table())
    client("dynamodb").put_item(TableName=name_of(client, "other-key"), Item={"id": {"S": "a"}})
    changed = apply_stack("other-key", table("name"))
    assert changed.status == "UPDATE_COMPLETE", changed
    found = client("dynamodb").describe_table(TableName=name_of(client, "other-key"))["Table"]
    assert [each["AttributeName"] for each in found["KeySchema"]] == ["name"]
    assert client("dynamodb").scan(TableName=found["TableName"])["Items"] == []
