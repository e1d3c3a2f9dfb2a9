"""Starts a build in CodeBuild during a deployment, so users need no tools for it."""

from __future__ import annotations

from typing import Final

import aws_cdk as cdk
from aws_cdk import aws_codebuild as codebuild
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from inference_constructs.observability.kept_log_group import short_log
from inference_runtime import runtime_directory

#: The longest run of a Lambda function. A build takes about three minutes.
_WAIT_MINUTES: Final = 15


def start_build(scope: Construct, *, project: codebuild.Project, tag: str, wait: bool) -> cdk.CustomResource:
    """Start a build at the first deployment, and when its source changes.

    scope: Parent of the function and its role.
    project: The project. Its build gets the variable ``TAG``.
    tag: Digest of the source.
    wait: Whether the deployment waits until the build has finished.
    """
    starter = runtime_directory() / "image_build"
    role = iam.Role(scope, "StartRole", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
    log = short_log(scope, "StartLog")
    log.grant_write(role)
    # CDK's CodeBuild construct has no grant for this.
    role.add_to_policy(
        iam.PolicyStatement(
            actions=["codebuild:StartBuild", *(["codebuild:BatchGetBuilds"] if wait else [])],
            resources=[project.project_arn],
        )
    )
    function = lambda_.Function(
        scope,
        "Starter",
        architecture=lambda_.Architecture.ARM_64,
        # An excluded folder would also hide the included files below it.
        code=lambda_.Code.from_asset(
            str(starter.parent), exclude=["*", ".*", f"!{starter.name}", f"!{starter.name}/*.py"]
        ),
        handler=f"{starter.name}.handler.handle",
        log_group=log,
        role=role,
        runtime=lambda_.Runtime.PYTHON_3_14,
        timeout=cdk.Duration.minutes(_WAIT_MINUTES if wait else 1),
    )
    return cdk.CustomResource(
        scope,
        "Start",
        resource_type="Custom::ImageBuild",
        service_token=function.function_arn,
        properties={"Project": project.project_name, "Tag": tag, **({"Wait": "true"} if wait else {})},
    )
