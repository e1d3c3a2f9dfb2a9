"""Checks of what a platform on Amazon ECS needs in the account, besides those of every platform."""

from __future__ import annotations

from collections.abc import Iterator

from botocore.exceptions import ClientError

import inference_catalog as catalog
from inference_blueprints.operate.check_results import CheckResult, Checks
from inference_blueprints.operate.doctor.doctor_context import DoctorContext
from inference_catalog.ecs_hosts import ecs_host_image, host_kind

#: Service-linked roles by service: Amazon ECS Developer Guide, "Using service-linked roles for Amazon ECS",
#: and Application Auto Scaling User Guide, "Service-linked roles". AWS creates them with the first cluster or
#: target if its caller may create such roles, which CloudFormation's role may not in every account.
_ROLES = {
    "ecs.amazonaws.com": "AWSServiceRoleForECS",
    "ecs.application-autoscaling.amazonaws.com": "AWSServiceRoleForApplicationAutoScaling_ECSService",
}
_APPLICATION_AUTO_SCALING = "ecs.application-autoscaling.amazonaws.com"


def host_image(context: DoctorContext) -> Iterator[CheckResult]:
    """Check that AWS publishes the images of hosts in the region, in the pinned release."""
    image = ecs_host_image()
    names = {each.name for pool in context.blueprint.spec.pools for each in pool.types}
    kinds = {host_kind(catalog.instance_type(name)) for name in names}
    missing = 0
    for parameter in sorted(map(image.parameter, kinds)):
        try:
            context.account.client("ssm").get_parameter(Name=parameter)
        except ClientError as error:
            if error.response["Error"]["Code"] != "ParameterNotFound":
                raise
            missing += 1
            message = f"AWS does not publish the ECS image {parameter} in {context.environment.region}"
            command = context.aws(f"ssm get-parameter --name {parameter}")
            yield CheckResult("host image", "error", message, command)
    if not missing:
        yield CheckResult("host image", "ok", f"release {image.version} is published")


def service_roles(context: DoctorContext) -> Iterator[CheckResult]:
    """Check that the account has the service-linked roles of ECS and of its scaling."""
    pages = context.account.client("iam").get_paginator("list_roles")
    elastic = any(
        workers.scaled_by is not None
        for model in context.blueprint.spec.models
        for deployment in model.deployments
        for workers in deployment.workers.values()
    )
    missing = 0
    for service, role in _ROLES.items():
        if service == _APPLICATION_AUTO_SCALING and not elastic:
            continue
        if any(page["Roles"] for page in pages.paginate(PathPrefix=f"/aws-service-role/{service}/")):
            continue
        missing += 1
        message = f"the account has no role {role}, and CloudFormation may not be allowed to create it"
        command = f"aws iam create-service-linked-role --aws-service-name {service}"
        yield CheckResult("ECS roles", "warning", message, command)
    if not missing:
        yield CheckResult("ECS roles", "ok", "the account has the service-linked roles")


#: Checks by name, in the order in which their results are shown.
ECS_CHECKS: Checks[DoctorContext] = {"host image": host_image, "ECS roles": service_roles}
