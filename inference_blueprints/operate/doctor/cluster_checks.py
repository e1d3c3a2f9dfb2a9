"""Checks of what a cluster needs in the account: of EKS its version and components, of ECS its settings."""

from __future__ import annotations

from collections.abc import Iterator

from botocore.exceptions import ClientError

import inference_catalog as catalog
from inference_blueprints.operate.check_results import CheckResult, Checks
from inference_blueprints.operate.doctor.doctor_context import DoctorContext
from inference_blueprints.operate.platform_add_ons import platform_add_ons
from inference_blueprints.report.plan.cells import counted
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.spec.support_dates import kubernetes_notice
from inference_catalog.ecs_hosts import ecs_host_image, host_kind
from inference_catalog.node_images import NVIDIA_RESOURCE, image_parameter

# Checks of what a platform on Amazon ECS needs in the account, besides those of every platform.

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


#: Maximum number of names of one GetParameters (AWS Systems Manager API Reference).
_NAMES_PER_CALL = 10
_NAME = "Kubernetes"


def add_ons(context: DoctorContext) -> Iterator[CheckResult]:
    """Check that each add-on has a version for the cluster's Kubernetes, and that pinned ones fit it."""
    cluster = context.blueprint.spec.cluster.eks
    if cluster is None:
        return
    pins = context.blueprint.releases.add_ons
    names = platform_add_ons(context.blueprint.spec)
    problems = 0
    for name in names:
        compatible = _compatible(context, name, cluster.version)
        pinned = pins.get(name)
        command = context.aws(
            f"eks describe-addon-versions --addon-name {name} --kubernetes-version {cluster.version}"
        )
        if not compatible:
            message = f"{name} has no version for Kubernetes {cluster.version} in this region; choose another"
            yield CheckResult("add-ons", "error", f"{message} cluster.eks.version", command)
        elif pinned and pinned not in compatible:
            message = (
                f"{name} {pinned} of the lock does not run on Kubernetes {cluster.version}; "
                f"run `blueprints upgrade {context.name_or_path} --apply`"
            )
            yield CheckResult("add-ons", "error", message, command)
        else:
            continue
        problems += 1
    if not problems:
        yield CheckResult("add-ons", "ok", f"{len(names)} have versions for Kubernetes {cluster.version}")


def _compatible(context: DoctorContext, name: str, kubernetes: str) -> set[str]:
    """Return the versions of an add-on that run on a version of Kubernetes."""
    pages = context.account.client("eks").get_paginator("describe_addon_versions")
    return {
        each["addonVersion"]
        for page in pages.paginate(addonName=name, kubernetesVersion=kubernetes)
        for add_on in page["addons"]
        for each in add_on["addonVersions"]
    }


def node_images(context: DoctorContext) -> Iterator[CheckResult]:
    """Check that AWS publishes the image of each pool in the region, in the pinned release."""
    cluster = context.blueprint.spec.cluster.eks
    if cluster is None:
        return
    systems = build_plan(context.blueprint).node_systems
    parameters: dict[str, list[str]] = {}
    for pool in context.blueprint.spec.pools:
        first = pool.types[0]
        nvidia = bool(first.accelerator and first.accelerator.resource_name == NVIDIA_RESOURCE)
        image = context.blueprint.releases.node_image(pool.name, cluster.version)
        name = image_parameter(image, systems[pool.name], first.architecture, nvidia=nvidia)
        parameters.setdefault(name, []).append(pool.name)
    ssm, names, missing = context.account.client("ssm"), list(parameters), []
    for start in range(0, len(names), _NAMES_PER_CALL):
        answer = ssm.get_parameters(Names=names[start : start + _NAMES_PER_CALL])
        missing += answer.get("InvalidParameters", [])
    for name in missing:
        message = (
            f"AWS does not publish {name} in {context.account.region}, so no node of "
            f"{', '.join(parameters[name])} starts; choose another release with `blueprints upgrade`, or "
            "another cluster.eks.version"
        )
        folder = name.removesuffix("/image_id").rpartition("/")[0]
        command = context.aws(f"ssm get-parameters-by-path --recursive --path {folder}")
        yield CheckResult("node images", "error", message, command)
    if not missing:
        found = f"{counted(len(names), 'image')} published in {context.account.region}"
        yield CheckResult("node images", "ok", found)


def kubernetes_support(context: DoctorContext) -> Iterator[CheckResult]:
    """Check that EKS supports the version as the blueprint asks for, and say what extended support costs."""
    eks = context.blueprint.spec.cluster.eks
    if eks is None:
        return
    notice = kubernetes_notice(context.blueprint, context.now)
    if notice:
        upgrade = f"blueprints upgrade {context.name_or_path}"
        yield CheckResult(_NAME, notice.severity, f"{notice.message}; {notice.advice}", upgrade)
    else:
        standard = catalog.kubernetes_version(eks.version).standard_support_ends
        yield CheckResult(_NAME, "ok", f"{eks.version} is in standard support until {standard}")
