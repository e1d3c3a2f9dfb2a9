"""Checks how long EKS still supports the Kubernetes version."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import inference_catalog as catalog
from inference_blueprints.operate.check_results import CheckResult
from inference_blueprints.operate.doctor.doctor_context import DoctorContext

_NAME = "Kubernetes"
#: Time before the end of standard support in which `doctor` warns: an upgrade needs a plan.
_NOTICE = timedelta(days=60)


def kubernetes_support(context: DoctorContext) -> Iterator[CheckResult]:
    """Check that EKS supports the version as the blueprint asks for, and say what extended support costs.

    EKS does not accept standard support for a version that is in extended support (Amazon EKS User Guide,
    "Prevent increased cluster costs by disabling EKS extended support"). It has updated clusters that had
    chosen standard support, and a deployment cannot go back.
    """
    eks = context.blueprint.spec.cluster.eks
    if eks is None:
        return
    release = catalog.kubernetes_version(eks.version)
    today = context.now.date().isoformat()
    soon = (context.now + _NOTICE).date().isoformat()
    upgrade = f"blueprints upgrade {context.name_or_path}"
    standard, extended = release.standard_support_ends, release.extended_support_ends
    if today >= extended:
        message = f"EKS has not supported {eks.version} since {extended}"
        yield CheckResult(_NAME, "error", f"{message}; set a newer cluster.eks.version", upgrade)
    elif today >= standard and not eks.extended_support:
        message = f"standard support of {eks.version} ended on {standard}"
        advice = "set a newer cluster.eks.version, or extendedSupport: true for a higher price"
        yield CheckResult(_NAME, "error", f"{message}; {advice}", upgrade)
    elif today >= standard:
        usd = catalog.service_prices(context.environment.region).usd("eks_extended_support")
        message = f"{eks.version} is in extended support, which costs {usd:.2f} USD more per hour"
        yield CheckResult(_NAME, "warning", f"{message} and ends on {extended}", upgrade)
    elif soon >= standard:
        message = f"standard support of {eks.version} ends on {standard}"
        then = "it costs more from then on" if eks.extended_support else "EKS then updates the cluster itself"
        yield CheckResult(_NAME, "warning", f"{message}; {then}", upgrade)
    else:
        yield CheckResult(_NAME, "ok", f"{eks.version} is in standard support until {standard}")
