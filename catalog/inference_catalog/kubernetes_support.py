"""Support of Kubernetes versions by Amazon EKS."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class KubernetesSupport:
    """A Kubernetes version that the library is made for."""

    name: str
    """Minor version, such as ``1.35``."""
    standard_support_ends: str
    extended_support_ends: str
    """`standard_support_ends`, `extended_support_ends`: Dates on which EKS ends each kind of support, such as
    ``2027-03-27``."""
    scheduler_tag: str
    """Tag of Amazon EKS Distro's image of kube-scheduler, for a scheduler beside that of EKS."""
