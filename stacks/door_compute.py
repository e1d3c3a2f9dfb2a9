"""The compute of the front door."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from constructs import IDependable

from inference_blueprints.render.front_door.places import DoorPlaces
from inference_blueprints.render.front_door.replica import DoorReferences
from inference_blueprints.serving.types.front_door import DoorPlan

if TYPE_CHECKING:  # platforms without a front door need not import the services that it uses
    from inference_constructs.front_door import DoorImage, DoorTargets


@dataclass(frozen=True)
class DoorParts:
    """What the stack of the front door gives to its replicas."""

    image: DoorImage
    targets: DoorTargets
    references: DoorReferences
    grant: Callable[[iam.IGrantable], Sequence[iam.Grant]]
    """Gives a role what the programs of a replica call."""
    earlier: Sequence[IDependable]
    """What must be there before the first replica starts."""


@dataclass(frozen=True)
class DoorAccess:
    """The front door, for the stacks of models."""

    target_group_arn: str | None
    """Target group to which the host names of models lead. None if they lead to the models."""
    registries: Mapping[str, str] = field(default_factory=dict)
    """On ECS, ARN of the service of AWS Cloud Map in which the tasks of a deployment's entry point are
    registered, by release."""


class DoorCompute(ABC):
    """Runs replicas of the front door, as pods of a cluster or as tasks of a service.

    door: The plan of the front door.
    """

    def __init__(self, door: DoorPlan) -> None:
        self._door = door

    @abstractmethod
    def places(self) -> DoorPlaces:
        """Return where the replicas find what they need."""

    @abstractmethod
    def admit(self, stack: cdk.Stack) -> ec2.ISecurityGroup:
        """Let the load balancer reach the replicas, and them the models. Return their security group.

        stack: Stack of the front door.
        """

    @abstractmethod
    def add_replicas(self, stack: cdk.Stack, parts: DoorParts) -> None:
        """Add the replicas and their scaling.

        stack: Stack of the front door.
        """

    def registries(self, stack: cdk.Stack) -> Mapping[str, str]:  # noqa: ARG002 - of those that have some
        """Add what names the entry points of models, and return its ARN by release. Empty on EKS."""
        return {}
