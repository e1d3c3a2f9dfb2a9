"""A function's log: on AWS, its role decides whether a missing log group is created."""

from __future__ import annotations

import io
import json
import uuid
import zipfile
from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError

ANYONE = {
    "Version": "2012-10-17",
    "Statement": [
        {"Effect": "Allow", "Principal": {"Service": "lambda.amazonaws.com"}, "Action": "sts:AssumeRole"}
    ],
}
WRITE = ["logs:CreateLogStream", "logs:PutLogEvents"]


def called(client: Callable[[str], Any], *, allowed: list[str]) -> str:
    """Call a function whose role has these permissions, and return the name of its log group."""
    name = uuid.uuid4().hex
    role = client("iam").create_role(RoleName=name, AssumeRolePolicyDocument=json.dumps(ANYONE))
    statement = {"Effect": "Allow", "Action": allowed, "Resource": "*"}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    client("iam").put_role_policy(RoleName=name, PolicyName="logs", PolicyDocument=policy)
    code = io.BytesIO()
    with zipfile.ZipFile(code, "w") as archive:
        archive.writestr("index.py", "def handler(event, context):\n    print('done')\n")
    client("lambda").create_function(
        FunctionName=name,
        Runtime="python3.11",
        Handler="index.handler",
        Role=role["Role"]["Arn"],
        Code={"ZipFile": code.getvalue()},
    )
    client("lambda").invoke(FunctionName=name)
    return f"/aws/lambda/{name}"


def test_a_function_that_may_create_its_log_group_does(client: Callable[[str], Any]) -> None:
    group = called(client, allowed=["logs:CreateLogGroup", *WRITE])
    events = client("logs").filter_log_events(logGroupName=group)["events"]
    assert "done" in [event["message"] for event in events]


def test_a_function_that_may_only_write_leaves_no_log_group(client: Callable[[str], Any]) -> None:
    group = called(client, allowed=WRITE)
    with pytest.raises(ClientError, match="ResourceNotFound"):
        client("logs").filter_log_events(logGroupName=group)
