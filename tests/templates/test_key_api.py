"""The API of keys: who may call it, what its function may do, and that teams have no other way to keys."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_kms as kms
from aws_cdk.assertions import Template

from inference_constructs.front_door import AuditBucket, DoorKeyApi, DoorKeyTable, DoorStore, isolate_keys
from inference_constructs.storage import LogBucket
from inference_contracts.door_audit import AUDIT_PREFIX
from tests.runtime.front_door.keys.key_tables import RULES

TEAMS = tuple(arn for team in RULES.teams for arn in team.principals)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A stack with the table, the bucket and the API."""
    app = cdk.App(outdir=str(tmp_path_factory.mktemp("cdk")))
    stack = cdk.Stack(app, "Door", env=cdk.Environment(account="111122223333", region="us-west-2"))
    key = kms.Key(stack, "Key")
    table = DoorKeyTable(stack, "Keys", encryption_key=key)
    bucket = AuditBucket(
        stack, "Audit", encryption_key=key, log_bucket=LogBucket(stack, "Logs"), retention_days=400
    )
    isolate_keys(table, bucket, principals=TEAMS)
    store = DoorStore(table.table_name, "ledger", "usage", bucket.bucket_name, key)
    api = DoorKeyApi(stack, "Api", store=store, rules=RULES, vpc=ec2.Vpc(stack, "Vpc"), role_path="/door/")
    cdk.CfnOutput(stack, "Url", value=api.url)
    return {**Template.from_stack(stack).to_json(), "assets": app.outdir}


def _of(template: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    return [each["Properties"] for each in template["Resources"].values() if each["Type"] == kind]


def _function_actions(template: dict[str, Any]) -> dict[str, list[str]]:
    """Return the actions of the function's policy, by what their resources are."""
    [policy] = [
        each
        for each in _of(template, "AWS::IAM::Policy")
        if "FunctionRole" in json.dumps(each["Roles"]) and "dynamodb" in json.dumps(each)
    ]
    found: dict[str, list[str]] = {}
    for statement in policy["PolicyDocument"]["Statement"]:
        actions = statement["Action"]
        place = json.dumps(statement["Resource"])
        found.setdefault(place, []).extend([actions] if isinstance(actions, str) else actions)
    return found


def test_only_signed_requests_from_the_vpc_reach_the_function(template: dict[str, Any]) -> None:
    methods = _of(template, "AWS::ApiGateway::Method")
    assert {each["AuthorizationType"] for each in methods} == {"AWS_IAM"}
    [api] = _of(template, "AWS::ApiGateway::RestApi")
    assert api["EndpointConfiguration"]["Types"] == ["PRIVATE"]
    [statement] = api["Policy"]["Statement"]
    assert "aws:SourceVpce" in statement["Condition"]["StringEquals"]
    [endpoint] = [
        each
        for each in _of(template, "AWS::EC2::VPCEndpoint")
        if "execute-api" in json.dumps(each["ServiceName"])
    ]
    # A second private host name in a VPC that has the batch API is refused.
    assert endpoint["PrivateDnsEnabled"] is False
    assert ".execute-api.us-west-2." in json.dumps(template["Outputs"]["Url"]["Value"])


def test_the_function_deletes_nothing_and_reads_no_record(template: dict[str, Any]) -> None:
    actions = _function_actions(template)
    used = {each for found in actions.values() for each in found if not each.startswith(("logs:", "kms:"))}
    assert used == {
        *("dynamodb:GetItem", "dynamodb:Query", "dynamodb:PutItem", "dynamodb:UpdateItem", "s3:PutObject"),
    }
    [objects] = [place for place, found in actions.items() if "s3:PutObject" in found]
    assert objects.rstrip("]}\"'").endswith(f"/{AUDIT_PREFIX}*")
    [keys] = [place for place, found in actions.items() if found and "kms:Decrypt" in found]
    assert keys != '"*"'


def test_teams_have_no_other_way_to_keys_than_the_api(template: dict[str, Any]) -> None:
    # A team whose roles may use all of DynamoDB changes keys of others in the table.
    [table] = _of(template, "AWS::DynamoDB::GlobalTable")
    [replica] = table["Replicas"]
    [denial] = replica["ResourcePolicy"]["PolicyDocument"]["Statement"]
    assert (denial["Effect"], denial["Action"], denial["Resource"]) == ("Deny", "dynamodb:*", "*")
    assert denial["Condition"] == {"ArnLike": {"aws:PrincipalArn": sorted(TEAMS)}}


def test_the_record_of_administration_only_grows(template: dict[str, Any]) -> None:
    policies = [
        each for each in _of(template, "AWS::S3::BucketPolicy") if "Audit" in json.dumps(each["Bucket"])
    ]
    denials = [each for each in policies[0]["PolicyDocument"]["Statement"] if each["Effect"] == "Deny"]
    [conditional] = [each for each in denials if "Null" in each.get("Condition", {})]
    assert conditional["Action"] == "s3:PutObject"
    assert conditional["Condition"] == {"Null": {"s3:if-none-match": "true"}}
    [teams] = [each for each in denials if "ArnLike" in each.get("Condition", {})]
    assert teams["Action"] == "s3:*"


def test_the_function_has_its_rules_and_everything_that_it_imports(template: dict[str, Any]) -> None:
    rules = list(Path(template["assets"]).glob("asset.*/key_rules.json"))
    assert [each.read_text() for each in rules] == [RULES.to_json()]
    code = rules[0].parent
    assert (code / "key_api/handler.py").is_file()
    assert (code / "inference_contracts/door_key_table.py").is_file()
    assert (code / "aws_lambda_powertools").is_dir()
