"""The batch API: reachable only inside the VPC. Callers sign their requests or send a token."""

from __future__ import annotations

import json

import aws_cdk as cdk
from aws_cdk import aws_apigateway as apigateway
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from inference_constructs.network.private_rest_api import PrivateRestApi
from inference_contracts.batch_limits import AUTHORIZER_SECONDS
from inference_runtime import runtime_directory

#: Below the functions' concurrency, and far above the needs of hundreds of teams: a job has many requests.
_REQUESTS_PER_SECOND, _REQUESTS_AT_ONCE = 100, 200


class BatchRestApi(PrivateRestApi):
    """A private REST API: `/v1` for tokens, `/iam/v1` for signed requests.

    Parameters
    ----------
    handler, authorizer
        The function that answers requests, and the one that identifies the caller of a token.
    vpc
        VPC of the callers. The API is reachable only through an API Gateway endpoint in it.
    vpc_cidr
        IPv4 range of the VPC; None for the one that the VPC knows.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        handler: lambda_.IFunction,
        authorizer: lambda_.IFunction,
        vpc: ec2.IVpc,
        vpc_cidr: str | None = None,
    ) -> None:
        super().__init__(
            scope,
            construct_id,
            vpc=vpc,
            vpc_cidr=vpc_cidr,
            description="HTTPS from the VPC to APIs",
            name=cdk.Stack.of(scope).stack_name,
            requests_per_second=_REQUESTS_PER_SECOND,
            requests_at_once=_REQUESTS_AT_ONCE,
            findings={
                "APIG6": "Access is logged. Execution logs need a role that the whole account shares.",
                "COG4": "Callers are IAM principals: they sign requests, or send a token signed by STS.",
            },
            binary_media_types=["multipart/form-data"],
        )
        responses = runtime_directory() / "batch" / "api" / "gateway_responses.json"
        for reason, response in json.loads(responses.read_text("utf-8")).items():
            self.api.add_gateway_response(
                reason,
                type=apigateway.ResponseType.of(reason),
                status_code=str(response["statusCode"]) if response["statusCode"] else None,
                templates={"application/json": json.dumps(response["body"])},
            )
        integration = apigateway.LambdaIntegration(handler, allow_test_invoke=False)
        tokens = apigateway.RequestAuthorizer(
            self,
            "Tokens",
            handler=authorizer,
            identity_sources=[apigateway.IdentitySource.header("Authorization")],
            results_cache_ttl=cdk.Duration.seconds(AUTHORIZER_SECONDS),
        )
        self.pass_on(["v1"], integration, authorizer=tokens)
        self.pass_on(["iam", "v1"], integration)
