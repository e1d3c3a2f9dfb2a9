"""The cluster that controllers look after: how they reach it, and what they may do in it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping

from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from constructs import Construct

from inference_contracts.shift_names import ShiftConfiguration


class ControlledCluster(ABC):
    """The cluster of a cell, whatever runs its containers.

    Parameters
    ----------
    name
        Its name, a plain string.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    @property
    @abstractmethod
    def environment(self) -> Mapping[str, str]:
        """Environment variables by which controllers know the cluster."""

    @abstractmethod
    def connect(self, scope: Construct, group: ec2.SecurityGroup) -> None:
        """Let controllers reach the cluster and AWS's services, by HTTPS.

        Services are reached through endpoints of the VPC or a NAT gateway; some have public addresses.

        Parameters
        ----------
        scope
            Parent of the rules.
        group
            Security group of the controllers.
        """

    @abstractmethod
    def grant_health(self, scope: Construct, role: iam.Role, *, replaces: bool) -> None:
        """Let GPU health read nodes and what runs on them.

        Parameters
        ----------
        scope
            Parent of what the access needs.
        role
            Role of its functions.
        replaces
            Whether it may also drain and replace nodes.
        """

    @property
    @abstractmethod
    def instance_condition(self) -> Mapping[str, Mapping[str, str]]:
        """Condition of IAM that only instances of the cluster's pools fulfil."""

    @abstractmethod
    def grant_shift(self, scope: Construct, role: iam.Role, shift: ShiftConfiguration) -> None:
        """Let the capacity shift read how many workers run, and set floors if the configuration says so.

        Parameters
        ----------
        scope
            Parent of what the access needs.
        role
            Role of its function.
        shift
            What it moves.
        """
