"""All checks of an account, in order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from inference_blueprints.operate.check_results import CheckResult, Checks, run_checks
from inference_blueprints.operate.doctor import (
    access_checks,
    caller_checks,
    capacity_checks,
    cluster_checks,
    network_checks,
)
from inference_blueprints.operate.doctor.cluster_checks import ECS_CHECKS
from inference_blueprints.operate.doctor.doctor_context import DoctorContext

#: Checks by name, in the order in which their results are shown.
CHECKS: Checks[DoctorContext] = {
    "CDK command line": access_checks.command_line,
    "kubectl": access_checks.kubectl,
    "bootstrap": access_checks.bootstrap,
    "Kubernetes": cluster_checks.kubernetes_support,
    "zones": network_checks.zones,
    "add-ons": cluster_checks.add_ons,
    "node images": cluster_checks.node_images,
    "VPC endpoints": network_checks.vpc_endpoints,
    "quotas": capacity_checks.quotas,
    "Elastic IPs": network_checks.elastic_addresses,
    "function calls": capacity_checks.reserved_calls,
    "offerings": capacity_checks.offerings,
    "Spot role": access_checks.spot_role,
    "API logging": access_checks.api_logging,
    "alarm topic": access_checks.alarm_topic,
    "reservations": capacity_checks.reservations,
    "weights": access_checks.weights,
    "network": network_checks.existing_network,
    "subnet addresses": network_checks.subnet_addresses,
    "private DNS": network_checks.private_names,
    "certificate": network_checks.certificate,
    "IAM callers": caller_checks.iam_callers,
    "key sets": caller_checks.key_sets,
}

#: Further checks by the key in the section ``cluster``. Those of EKS above have no result without it.
_OF_CLUSTER: Mapping[str, Checks[DoctorContext]] = {"eks": {}, "ecs": ECS_CHECKS}


def check_environment(context: DoctorContext) -> Iterator[CheckResult]:
    """Iterate over all results; without usable credentials, only these are checked."""
    credentials = access_checks.credentials(context)
    yield credentials
    if credentials.severity != "error":
        yield from run_checks({**CHECKS, **_OF_CLUSTER[context.blueprint.spec.cluster.chosen]}, context)
