"""A REST API that only a VPC reaches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import aws_cdk as cdk
from aws_cdk import aws_apigateway as apigateway
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from constructs import Construct

from inference_constructs.findings import acknowledge
from inference_constructs.observability.kept_log_group import short_log


class PrivateRestApi(Construct):
    """A private REST API, and the endpoint of the VPC through which alone it is reached.

    Parameters
    ----------
    vpc
        VPC of the callers.
    vpc_cidr
        IPv4 range of the VPC; None for the one that the VPC knows.
    description
        Description of the endpoint's security group.
    name
        Name of the API. It is the only dimension of its metrics, so it must differ from that of each other
        API of the account and region (Amazon API Gateway Developer Guide, "Amazon API Gateway dimensions and
        metrics").
    requests_per_second, requests_at_once
        Requests that API Gateway lets through.
    private_dns
        Whether the endpoint has the private host name, which one endpoint of API Gateway in a VPC may have
        (Amazon API Gateway Developer Guide, "Invoke a private API").
    findings
        Findings of cdk-nag about the API, and why each is accepted.
    binary_media_types
        Types of bodies that pass as they are.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        vpc: ec2.IVpc,
        vpc_cidr: str | None,
        description: str,
        name: str,
        requests_per_second: int,
        requests_at_once: int,
        findings: Mapping[str, str],
        private_dns: bool = True,
        binary_media_types: Sequence[str] | None = None,
    ) -> None:
        super().__init__(scope, construct_id)
        security_group = ec2.SecurityGroup(
            self, "Endpoint", vpc=vpc, allow_all_outbound=False, description=description
        )
        security_group.add_ingress_rule(ec2.Peer.ipv4(vpc_cidr or vpc.vpc_cidr_block), ec2.Port.tcp(443))
        #: The endpoint.
        self.endpoint = ec2.InterfaceVpcEndpoint(
            self,
            "ExecuteApi",
            vpc=vpc,
            service=ec2.InterfaceVpcEndpointAwsService.APIGATEWAY,
            open=False,
            private_dns_enabled=private_dns,
            security_groups=[security_group],
            subnets=ec2.SubnetSelection(subnets=vpc.private_subnets),
        )
        #: The API.
        self.api = apigateway.RestApi(
            self,
            "Api",
            binary_media_types=list(binary_media_types) if binary_media_types else None,
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
                throttling_burst_limit=requests_at_once,
                throttling_rate_limit=requests_per_second,
            ),
            endpoint_configuration=apigateway.EndpointConfiguration(
                types=[apigateway.EndpointType.PRIVATE], vpc_endpoints=[self.endpoint]
            ),
            # Through the endpoint only. What identifies the caller is checked at each path.
            policy=iam.PolicyDocument(
                statements=[
                    iam.PolicyStatement(
                        actions=["execute-api:Invoke"],
                        conditions={"StringEquals": {"aws:SourceVpce": self.endpoint.vpc_endpoint_id}},
                        principals=[iam.AnyPrincipal()],
                        resources=["execute-api:/*"],
                    )
                ]
            ),
            rest_api_name=name,
        )
        acknowledge(
            self.api,
            {
                "APIG2": "The function validates each request and reports all errors at once.",
                "APIG3": "The API is not reachable from outside the VPC.",
                **findings,
            },
        )

    @property
    def host(self) -> str:
        """Host name of the API. Its address is public, and leads to the endpoint in the VPC."""
        stack = cdk.Stack.of(self)
        name = f"{self.api.rest_api_id}-{self.endpoint.vpc_endpoint_id}"
        return f"{name}.execute-api.{stack.region}.{stack.url_suffix}"

    def pass_on(
        self,
        path: Sequence[str],
        integration: apigateway.LambdaIntegration,
        *,
        authorizer: apigateway.IAuthorizer | None = None,
    ) -> None:
        """Pass all requests below a path on.

        path: Parts of the path.
        integration: The function that answers.
        authorizer: What identifies the caller; None for signed requests of IAM principals.
        """
        resource: apigateway.IResource = self.api.root
        for part in path:
            resource = resource.add_resource(part)
        resource.add_proxy(
            any_method=True,
            default_integration=integration,
            default_method_options=apigateway.MethodOptions(
                authorizer=authorizer,
                authorization_type=None if authorizer else apigateway.AuthorizationType.IAM,
            ),
        )
