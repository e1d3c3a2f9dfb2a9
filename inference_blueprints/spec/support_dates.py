"""Until when AWS supports what a platform runs on, and what the present time means for it.

As the dates of Capacity Blocks, these findings look at the clock, and are warnings: a platform is still read,
checked and removed afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Literal

import inference_catalog as catalog
from inference_blueprints.spec.types import Blueprint
from inference_catalog.catalogue import shipped
from inference_catalog.limits import SupportEnd, support_ends
from inference_catalog.releases import version_order
from inference_contracts.errors import Finding
from inference_contracts.records import dataclass
from inference_contracts.units import HOURS_PER_MONTH

#: Time before the end of support in which it is said: an upgrade needs a plan.
_NOTICE = timedelta(days=60)


@dataclass(frozen=True, slots=True)
class KubernetesNotice:
    """What the calendar means for a version of Kubernetes."""

    severity: Literal["error", "warning"]
    """``error`` if EKS does not run the version as the blueprint asks."""
    message: str
    """What ended or will end."""
    advice: str
    """What follows, or what to do."""


def kubernetes_notice(blueprint: Blueprint, now: datetime) -> KubernetesNotice | None:
    """Return what the calendar means for a cluster's Kubernetes; None if its standard support lasts.

    EKS does not accept standard support for a version that is in extended support (Amazon EKS User Guide,
    "Prevent increased cluster costs by disabling EKS extended support"). It has updated clusters that had
    chosen standard support, and a deployment cannot go back.

    blueprint: A blueprint, of any cluster.
    now: The present time, with a time zone.
    """
    eks = blueprint.spec.cluster.eks
    if eks is None or eks.version not in shipped().kubernetes_versions:
        return None
    release = catalog.kubernetes_version(eks.version)
    today, soon = now.date().isoformat(), (now + _NOTICE).date().isoformat()
    standard, extended = release.standard_support_ends, release.extended_support_ends
    usd = catalog.service_prices(blueprint.spec.environment.region).usd("eks_extended_support")
    price = f"{usd:.2f} USD more per hour ({usd * HOURS_PER_MONTH:,.0f} a month)"
    if today >= extended:
        message = f"EKS has not supported {eks.version} since {extended}"
        return KubernetesNotice("error", message, "set a newer cluster.eks.version")
    if today >= standard and not eks.extended_support:
        message = f"standard support of {eks.version} ended on {standard}"
        advice = "set a newer cluster.eks.version, or extendedSupport: true for a higher price"
        return KubernetesNotice("error", message, advice)
    if today >= standard:
        message = f"{eks.version} is in extended support, which costs {price} and ends on {extended}"
        return KubernetesNotice("warning", message, "set a newer cluster.eks.version")
    if soon >= standard:
        message = f"standard support of {eks.version} ends on {standard}"
        later = f"it costs {price} from then on"
        then = later if eks.extended_support else "EKS then updates the cluster itself"
        return KubernetesNotice("warning", message, then)
    return None


def support_findings(blueprint: Blueprint, now: datetime) -> Iterator[Finding]:
    """Warn of what AWS supports no longer, or not much longer.

    blueprint: The blueprint, which may have invalid values.
    now: The present time, with a time zone.
    """
    notice = kubernetes_notice(blueprint, now)
    if notice:
        newest = max(shipped().kubernetes_versions, key=version_order)
        eks = blueprint.spec.cluster.eks
        other = f"; {newest} is the newest here" if eks and eks.version != newest else ""
        message = f"{notice.message}; {notice.advice}{other}"
        yield Finding(("spec", "cluster", "eks", "version"), message, "warning")
    for end in support_ends():
        if end.ends and end.section and getattr(blueprint.spec, end.section, None) and _is_near(end, now):
            verb = "ended" if end.ends <= now.date().isoformat() else "ends"
            message = f"support of {end.name} {end.version} {verb} on {end.ends}; {end.then} ({end.source})"
            yield Finding(("spec", end.section), message, "warning")


def _is_near(end: SupportEnd, now: datetime) -> bool:
    return end.ends is not None and (now + _NOTICE).date().isoformat() >= end.ends
