"""How long EKS supports a Kubernetes version."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class KubernetesRelease:
    """A minor version of Kubernetes on EKS.

    Parameters
    ----------
    name
        The version, such as ``1.35``.
    standard_support_ends, extended_support_ends
        Days on which the two periods of support end, as ``YYYY-MM-DD``. Days compare as text.
    """

    name: str
    standard_support_ends: str
    extended_support_ends: str
