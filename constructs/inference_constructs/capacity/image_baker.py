"""Bakes container images into snapshots. Nodes create their data volume from such a snapshot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from aws_cdk import aws_ssm as ssm
from aws_cdk import aws_stepfunctions as sfn
from constructs import Construct

from inference_catalog import image_cache
from inference_catalog.log_groups import state_machine_log_group
from inference_catalog.node_images import image_parameter
from inference_catalog.releases import NodeImage
from inference_catalog.tags import PLATFORM_TAG
from inference_constructs.capacity.image_baker_policies import (
    BakerScope,
    baker_statements,
    log_delivery_statement,
    pull_document,
)
from inference_constructs.capacity.image_baking_states import BakingResources, baking_definition
from inference_constructs.capacity.node_settings import baking_settings
from inference_constructs.findings import acknowledge, acknowledge_managed_policies, acknowledge_wildcards
from inference_constructs.policy_statements import policy_document


class ImageBaker(Construct):
    """A state machine that starts an instance, pulls images, takes a snapshot and terminates the instance.

    It costs nothing while it does not run. Nobody can connect to the instance: it has no public address, no
    key and no open port, and the Systems Manager document accepts only image names.

    Parameters
    ----------
    platform
        Value of the platform's tag.
    image
        Image that nodes boot. The instance uses its variant without NVIDIA drivers, for all pools.
    architectures
        Architectures of the pools that use snapshots: ``amd64``, ``arm64``.
    vpc
        VPC of the instance, which is in the first private subnet and reaches the registries from there.
    tags
        Tags of instances, volumes and snapshots.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        platform: str,
        image: NodeImage,
        architectures: Sequence[str],
        vpc: ec2.IVpc,
        tags: Mapping[str, str],
    ) -> None:
        super().__init__(scope, construct_id)
        self._stack = cdk.Stack.of(self)
        self._subnet_id = vpc.private_subnets[0].subnet_id
        self._security_group = self._https_out(vpc.vpc_id)
        self._instance_role = self._add_instance_role()
        self._document = ssm.CfnDocument(
            self,
            "Document",
            content=pull_document(),
            document_type="Command",
            target_type="/AWS::EC2::Instance",
            update_method="NewVersion",
        )
        parameters = {
            name: image_parameter(image, "bottlerocket", name, nvidia=False) for name in architectures
        }
        profile = iam.CfnInstanceProfile(self, "Profile", roles=[self._instance_role.ref])
        templates = {
            name: self._launch_template(name, parameter, profile) for name, parameter in parameters.items()
        }
        definition = baking_definition(
            BakingResources(
                launch_templates={
                    name: {"LaunchTemplateId": each.ref, "Version": each.attr_latest_version_number}
                    for name, each in templates.items()
                },
                document_name=self._document.ref,
                tags={**tags, PLATFORM_TAG: platform},
                snapshot_tags={
                    image_cache.BOTTLEROCKET_TAG: image_cache.variant(image),
                    image_cache.SNAPSHOTTER_TAG: image_cache.SNAPSHOTTER,
                },
            )
        )
        role = self._add_role(platform, list(templates.values()), list(parameters.values()))
        log = logs.LogGroup(
            self,
            "Log",
            log_group_name=state_machine_log_group(platform, "image-cache"),
            removal_policy=cdk.RemovalPolicy.DESTROY,
            retention=logs.RetentionDays.THREE_MONTHS,
        )
        self.state_machine = sfn.CfnStateMachine(
            self,
            "StateMachine",
            definition_string=self._stack.to_json_string(definition),
            logging_configuration=sfn.CfnStateMachine.LoggingConfigurationProperty(
                destinations=[
                    sfn.CfnStateMachine.LogDestinationProperty(
                        cloud_watch_logs_log_group=sfn.CfnStateMachine.CloudWatchLogsLogGroupProperty(
                            log_group_arn=log.log_group_arn
                        )
                    )
                ],
                level="ALL",
            ),
            role_arn=role.attr_arn,
        )
        acknowledge(
            self.state_machine,
            {"SF2": "It runs once per engine release, and its execution history contains every step."},
        )

    def _https_out(self, vpc_id: str) -> ec2.CfnSecurityGroup:
        """Allow connections from the instance to registries and AWS, and none to the instance."""
        return ec2.CfnSecurityGroup(
            self,
            "SecurityGroup",
            group_description="Instances that pull images",
            security_group_egress=[
                ec2.CfnSecurityGroup.EgressProperty(
                    cidr_ip="0.0.0.0/0",
                    description="Registries and AWS",
                    from_port=443,
                    ip_protocol="tcp",
                    to_port=443,
                )
            ],
            vpc_id=vpc_id,
        )

    def _add_instance_role(self) -> iam.CfnRole:
        """Let Systems Manager manage the instance, and the instance pull Bottlerocket's host containers."""
        prefix = f"arn:{self._stack.partition}:iam::aws:policy/"
        policies = [f"{prefix}AmazonSSMManagedInstanceCore", f"{prefix}AmazonEC2ContainerRegistryPullOnly"]
        role = iam.CfnRole(
            self,
            "InstanceRole",
            assume_role_policy_document=_trust("ec2.amazonaws.com"),
            managed_policy_arns=policies,
        )
        acknowledge_managed_policies(
            role, policies, "AWS maintains these policies for its agent and Bottlerocket's host containers."
        )
        return role

    def _launch_template(
        self, architecture: str, image_parameter: str, profile: iam.CfnInstanceProfile
    ) -> ec2.CfnLaunchTemplate:
        """Define everything about the instance except its volumes and tags."""
        return ec2.CfnLaunchTemplate(
            self,
            f"LaunchTemplate-{architecture}",
            launch_template_data=ec2.CfnLaunchTemplate.LaunchTemplateDataProperty(
                iam_instance_profile=ec2.CfnLaunchTemplate.IamInstanceProfileProperty(arn=profile.attr_arn),
                image_id=f"resolve:ssm:{image_parameter}",
                instance_type=image_cache.INSTANCE_TYPES[architecture],
                metadata_options=ec2.CfnLaunchTemplate.MetadataOptionsProperty(
                    http_put_response_hop_limit=1, http_tokens="required"
                ),
                network_interfaces=[
                    ec2.CfnLaunchTemplate.NetworkInterfaceProperty(
                        associate_public_ip_address=False,
                        device_index=0,
                        groups=[self._security_group.attr_group_id],
                        subnet_id=self._subnet_id,
                    )
                ],
                user_data=cdk.Fn.base64(baking_settings()),
            ),
        )

    def _add_role(
        self, platform: str, templates: Sequence[ec2.CfnLaunchTemplate], parameters: Sequence[str]
    ) -> iam.CfnRole:
        """Add the role of the state machine."""
        stack = self._stack
        scope = BakerScope(
            partition=stack.partition,
            region=stack.region,
            account=stack.account,
            platform=platform,
            launch_template_arns=[
                f"arn:{stack.partition}:ec2:{stack.region}:{stack.account}:launch-template/{each.ref}"
                for each in templates
            ],
            instance_role_arn=self._instance_role.attr_arn,
            document_arn=(
                f"arn:{stack.partition}:ssm:{stack.region}:{stack.account}:document/{self._document.ref}"
            ),
            image_parameter_arns=[
                f"arn:{stack.partition}:ssm:{stack.region}::parameter{parameter}" for parameter in parameters
            ],
            subnet_id=self._subnet_id,
            security_group_id=self._security_group.attr_group_id,
        )
        baking, logging = baker_statements(scope), [log_delivery_statement()]
        role = iam.CfnRole(
            self,
            "Role",
            assume_role_policy_document=_trust("states.amazonaws.com"),
            policies=[
                iam.CfnRole.PolicyProperty(policy_name="Baking", policy_document=policy_document(baking)),
                iam.CfnRole.PolicyProperty(policy_name="Log", policy_document=policy_document(logging)),
            ],
        )
        acknowledge_wildcards(
            role,
            baking,
            "Instances, volumes and snapshots do not exist yet. Write permissions are limited to the launch "
            "template and to the tags of a bake, read permissions to the region.",
        )
        acknowledge_wildcards(role, logging, "CloudWatch's actions for log delivery have no resource types.")
        return role


def _trust(service: str) -> dict[str, object]:
    """Return a trust policy for an AWS service."""
    return {
        "Version": "2012-10-17",
        "Statement": [{"Effect": "Allow", "Principal": {"Service": service}, "Action": "sts:AssumeRole"}],
    }
