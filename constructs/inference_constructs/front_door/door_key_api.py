"""The API of API keys: reachable only inside the VPC. Teams sign their requests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import aws_cdk as cdk
from aws_cdk import aws_apigateway as apigateway
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from constructs import Construct

from inference_constructs.batch.add_function import add_function
from inference_constructs.code_staging import function_code
from inference_constructs.findings import acknowledge_grants
from inference_constructs.front_door.door_store import DoorStore
from inference_constructs.network.private_rest_api import PrivateRestApi
from inference_contracts import key_api_names
from inference_contracts.door_audit import AUDIT_PREFIX
from inference_contracts.door_key_acts import KeyRules
from inference_runtime import runtime_directory

#: File of the rules, beside the function's code: all variables of a function share 4 KB.
_RULES: Final = "key_rules.json"
_PACKAGES: Final = ("aws_lambda_powertools", "typing_extensions")
#: People and their pipelines make keys. More is a fault in a program.
_REQUESTS_PER_SECOND, _REQUESTS_AT_ONCE = 20, 40


class DoorKeyApi(Construct):
    """A private REST API for signed requests below `/iam/v1/keys`.

    API Gateway checks the signature, and the function finds the caller's team. Its address names the API and
    the VPC endpoint, so that it works beside other endpoints of API Gateway in the VPC, of which only one may
    have the private host name (Amazon API Gateway Developer Guide, "Invoke a private API").

    Parameters
    ----------
    store
        Tables and buckets of the front door.
    rules
        What keys of the platform may be.
    vpc
        VPC of the callers.
    vpc_cidr
        IPv4 range of the VPC; None for the one that the VPC knows.
    role_path
        IAM path of the function's role.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        store: DoorStore,
        rules: KeyRules,
        vpc: ec2.IVpc,
        vpc_cidr: str | None = None,
        role_path: str = "/",
    ) -> None:
        super().__init__(scope, construct_id)
        self.function = add_function(
            self,
            "Function",
            code=function_code(
                runtime_directory() / "key_api", packages=_PACKAGES, documents={_RULES: rules.to_json()}
            ),
            handler="key_api.handler.handle",
            timeout_seconds=29,
            memory_mib=512,
            environment={
                key_api_names.TABLE: store.keys_table,
                key_api_names.AUDIT_BUCKET: store.audit_bucket,
                key_api_names.RULES: _RULES,
            },
            role_path=role_path,
        )
        grant = store.grant_administer_keys(self.function)
        acknowledge_grants(self, [grant], "Each act is an object of its own, whose name has its time.")
        # The default child adds nothing to the logical ids of its resources.
        private = PrivateRestApi(
            self,
            "Default",
            vpc=vpc,
            vpc_cidr=vpc_cidr,
            description="HTTPS from the VPC to the API",
            name=f"{cdk.Stack.of(self).stack_name}-Keys",
            requests_per_second=_REQUESTS_PER_SECOND,
            requests_at_once=_REQUESTS_AT_ONCE,
            findings={
                "APIG6": "Access is logged. Execution logs could hold secrets of keys.",
                "COG4": "Callers are IAM principals, which sign their requests.",
            },
            private_dns=False,
        )
        private.pass_on(["iam", "v1"], apigateway.LambdaIntegration(self.function, allow_test_invoke=False))
        self.api = private.api
        stack = cdk.Stack.of(self)
        #: Base URL of the API, which ends in ``/v1``.
        self.url = (
            f"https://{self.api.rest_api_id}-{private.endpoint.vpc_endpoint_id}.execute-api.{stack.region}."
            f"{stack.url_suffix}/{self.api.deployment_stage.stage_name}/iam/v1"
        )


def isolate_keys(table: dynamodb.TableV2, bucket: s3.Bucket, *, principals: Sequence[str]) -> None:
    """Deny teams every way to keys but the API, also roles whose own policies allow all of DynamoDB and S3.

    Otherwise a team could read and change keys of others in the table. An allowing statement in another
    policy cannot weaken an explicit denial
    (https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_evaluation-logic.html).

    Objects of the record of administration can only be added: a write without ``If-None-Match`` is denied to
    everybody (https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-writes-enforce.html).

    Parameters
    ----------
    table
        Table of API keys.
    bucket
        Bucket of the record of administration.
    principals
        ARNs of the IAM roles and users of all teams. The policy of a table has at most 20 KB
        (https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/rbac-considerations.html).
    """
    bucket.add_to_resource_policy(
        _denial(
            ["s3:PutObject"],
            [bucket.arn_for_objects(f"{AUDIT_PREFIX}*")],
            {"Null": {"s3:if-none-match": "true"}},
        )
    )
    if not principals:
        return
    teams = {"ArnLike": {"aws:PrincipalArn": sorted({*principals})}}
    bucket.add_to_resource_policy(_denial(["s3:*"], [bucket.bucket_arn, bucket.arn_for_objects("*")], teams))
    # A policy that names the ARN of its own table would depend on it: the wildcard stands for the table.
    table.add_to_resource_policy(_denial(["dynamodb:*"], ["*"], teams))


def _denial(
    actions: Sequence[str], resources: Sequence[str], conditions: Mapping[str, Mapping[str, object]]
) -> iam.PolicyStatement:
    return iam.PolicyStatement(
        effect=iam.Effect.DENY,
        actions=list(actions),
        principals=[iam.AnyPrincipal()],
        resources=list(resources),
        conditions=dict(conditions),
    )
