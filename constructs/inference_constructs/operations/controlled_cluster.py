"""The cluster that controllers look after."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class EcsControlledCluster:
    """The cluster of a cell on Amazon ECS. Its controllers call AWS's services and nothing else.

    Parameters
    ----------
    name
        Its name, a plain string.
    """

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlledCluster:
    """The cluster of a cell on Amazon EKS, as its controllers reach it.

    Parameters
    ----------
    name
        Its name, a plain string.
    endpoint
        Address of the Kubernetes API.
    authority
        Its certificate authority, PEM in base64.
    security_group_id
        Security group of the control plane's interfaces.
    """

    name: str
    endpoint: str
    authority: str
    security_group_id: str
