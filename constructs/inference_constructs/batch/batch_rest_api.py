"""The batch API: reachable only inside the VPC. Callers sign their requests or send a token."""

from __future__ import annotations

import json
from collections.abc import Sequence

import aws_cdk as cdk
from aws_cdk import aws_apigateway as apigateway
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from inference_constructs.findings import acknowledge
from inference_constructs.observability.kept_log_group import short_log
from inference_contracts.batch_limits import AUTHORIZER_SECONDS
from inference_runtime import runtime_directory

#: Below the functions' concurrency, and far above the needs of hundreds of teams: a job has many requests.
_REQUESTS_PER_SECOND, _REQUESTS_AT_ONCE = 100, 200


class BatchRestApi(Construct):
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
        super().__init__(scope, construct_id)
        endpoint = self._add_endpoint(vpc, vpc_cidr or vpc.vpc_cidr_block)
        self.api = apigateway.RestApi(
            self,
            "Api",
            binary_media_types=["multipart/form-data"],
            cloud_watch_role=False,
            deploy_options=apigateway.StageOptions(
                access_log_destination=apigateway.LogGroupLogDestination(short_log(self, "Log")),
                access_log_format=apigateway.AccessLogFormat.json_with_standard_fields(
                    caller=True,
                    http_method=True,
                    ip=True,
                    protocol=True,
                    request_time=True,
                    resource_path=True,
                    response_length=True,
                    status=True,
                    user=True,
                ),
                metrics_enabled=True,
                throttling_burst_limit=_REQUESTS_AT_ONCE,
                throttling_rate_limit=_REQUESTS_PER_SECOND,
            ),
            endpoint_configuration=apigateway.EndpointConfiguration(
                types=[apigateway.EndpointType.PRIVATE], vpc_endpoints=[endpoint]
            ),
            policy=_policy(endpoint),
            # The only dimension of the API's metrics: two platforms with one name would share their figures
            # (Amazon API Gateway Developer Guide, "Amazon API Gateway dimensions and metrics").
            rest_api_name=cdk.Stack.of(self).stack_name,
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
        self._add(["v1"], integration, authorizer=tokens)
        self._add(["iam", "v1"], integration, authorization_type=apigateway.AuthorizationType.IAM)
        acknowledge(
            self.api,
            {
                "APIG2": "The function validates each request and reports all errors at once.",
                "APIG3": "The API is not reachable from outside the VPC.",
                "APIG6": "Access is logged. Execution logs need a role that the whole account shares.",
                "COG4": "Callers are IAM principals: they sign requests, or send a token signed by STS.",
            },
        )

    def _add_endpoint(self, vpc: ec2.IVpc, cidr: str) -> ec2.InterfaceVpcEndpoint:
        """Add the endpoint through which the VPC reaches the API by its DNS name."""
        security_group = ec2.SecurityGroup(
            self, "Endpoint", vpc=vpc, allow_all_outbound=False, description="HTTPS from the VPC to APIs"
        )
        security_group.add_ingress_rule(ec2.Peer.ipv4(cidr), ec2.Port.tcp(443))
        return ec2.InterfaceVpcEndpoint(
            self,
            "ExecuteApi",
            vpc=vpc,
            service=ec2.InterfaceVpcEndpointAwsService.APIGATEWAY,
            open=False,
            security_groups=[security_group],
            subnets=ec2.SubnetSelection(subnets=vpc.private_subnets),
        )

    def _add(
        self,
        path: Sequence[str],
        integration: apigateway.LambdaIntegration,
        *,
        authorizer: apigateway.IAuthorizer | None = None,
        authorization_type: apigateway.AuthorizationType | None = None,
    ) -> None:
        """Pass all requests below a path to the handler."""
        resource: apigateway.IResource = self.api.root
        for part in path:
            resource = resource.add_resource(part)
        resource.add_proxy(
            any_method=True,
            default_integration=integration,
            default_method_options=apigateway.MethodOptions(
                authorizer=authorizer, authorization_type=authorization_type
            ),
        )


def _policy(endpoint: ec2.IVpcEndpoint) -> iam.PolicyDocument:
    """Return a policy that allows calls through the endpoint only. The authorizers check the caller."""
    return iam.PolicyDocument(
        statements=[
            iam.PolicyStatement(
                actions=["execute-api:Invoke"],
                conditions={"StringEquals": {"aws:SourceVpce": endpoint.vpc_endpoint_id}},
                principals=[iam.AnyPrincipal()],
                resources=["execute-api:/*"],
            )
        ]
    )
