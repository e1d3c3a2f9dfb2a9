"""The interface of the stacks of a target, and the foundation that all targets share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import aws_cdk as cdk

from inference_blueprints.serving.scaling.shift_of_plan import shift_configuration_of
from inference_blueprints.serving.types import ServingPlan
from inference_blueprints.serving.types.front_door import DoorPlan
from inference_blueprints.spec.derived import controllers_of
from inference_blueprints.spec.types import Blueprint
from inference_contracts.door_names import USAGE_STREAM_OUTPUT
from stacks.data_stack import DataStack
from stacks.door_compute import DoorAccess, DoorCompute
from stacks.network_stack import NetworkStack
from stacks.shared_parts import door_priority
from stacks.worker_compute import WorkerCompute

if TYPE_CHECKING:  # only some blueprints need the services that they import
    from inference_constructs.front_door import PlatformKeySecret
    from inference_constructs.operations import ControlledCluster
    from stacks.certificates_stack import CertificatesStack


def stack_name(platform: str, stack: str) -> str:
    """Return the name of a stack. It is different for each platform of an account."""
    return f"{platform}-{stack}"


@dataclass(frozen=True, slots=True)
class Foundation:
    """The parts of a platform that do not depend on its target."""

    app: cdk.App
    """The app that the stacks become part of."""
    blueprint: Blueprint
    """The platform."""
    plan: ServingPlan
    env: cdk.Environment
    tags: Mapping[str, str]
    """Tags of every resource."""
    data: DataStack
    network: NetworkStack
    """`data`, `network`: The stack with keys and buckets, and the stack with the VPC and its load
    balancer."""
    certificates: CertificatesStack | None = None
    """The stack with the certificates of callers. None without a front door."""
    platform_keys: Mapping[str, PlatformKeySecret] = field(default_factory=dict)
    """The secret with the keys of batch, of the canary, and of each streaming job, by `KeyOwner.tag`. Empty
    without a front door."""

    @property
    def certificate_arns(self) -> Mapping[str, str]:
        """ARN of the secret of each caller, and of each deployment by its release; none without a door."""
        return self.certificates.secret_arns if self.certificates else {}

    def stack_name(self, stack: str) -> str:
        """Return the name of a stack. It starts with the platform's name, which is unique in an account.

        stack: Kind of the stack, such as ``Cluster``.
        """
        return stack_name(self.blueprint.metadata.name, stack)


class TargetStacks(ABC):
    """The stacks of one target. A target runs the containers of a platform.

    A target has a folder in ``stacks/`` with one subclass, and an entry of ``TARGETS`` in
    ``stacks/platform.py`` with its key in the blueprint's section ``cluster``. Its part without CDK is a
    `Target` in ``inference_blueprints/render/``.

    foundation: The stacks on which the target's stacks depend.
    """

    def __init__(self, foundation: Foundation) -> None:
        self._foundation = foundation
        #: Names of the services of the discovery store. Empty if the target, or the platform, has none.
        self.discovery_services: Sequence[str] = ()
        #: Name of the stream of the front door's usage records. None without a front door.
        self.usage_stream: str | None = None
        #: Stack of the front door, which has this stream. None without one.
        self.front_door: cdk.Stack | None = None

    @abstractmethod
    def add(self) -> WorkerCompute:
        """Add every stack that runs models, in deployment order, and return the compute of batch workers."""

    def _add_front_door(
        self, compute: Callable[[DoorPlan], DoorCompute], *, after: Sequence[cdk.Stack]
    ) -> DoorAccess | None:
        """Add the stack of the front door, if the blueprint has one, and return what models need to know."""
        foundation = self._foundation
        door, store = foundation.plan.front_door, foundation.data.front_door
        section = foundation.blueprint.spec.front_door
        if door is None or store is None or section is None:
            return None
        from inference_blueprints.serving.front_door.key_rules import key_rules
        from stacks.front_door_stack import FrontDoorStack

        rules = key_rules(foundation.blueprint)
        stack = FrontDoorStack(
            foundation.app,
            foundation.stack_name("FrontDoor"),
            door=door,
            compute=compute(door),
            store=store,
            jobs=foundation.data.batch,
            certificate_arn=foundation.certificate_arns["door"],
            gateway=foundation.network.models.gateway,
            priority=door_priority(foundation.blueprint.spec),
            takes_old_names=section.old_host_names.models is None,
            key_rules=rules if rules and any(team.principals for team in rules.teams) else None,
            vpc=foundation.network.vpc,
            vpc_cidr=foundation.network.vpc_cidr,
            encryption_key=foundation.data.encryption_key,
            log_bucket=foundation.data.log_bucket,
            env=foundation.env,
        )
        for each in after:
            stack.add_stack_dependency(each)
        self.front_door = stack
        self.usage_stream = cdk.Fn.get_stack_output(
            stack.stack_name, USAGE_STREAM_OUTPUT, region=stack.region
        )
        return stack.access

    def _add_operations(
        self,
        cluster: Callable[[cdk.Stack], ControlledCluster],
        *,
        on_ecs: bool,
        after: Sequence[cdk.Stack],
    ) -> cdk.Stack | None:
        """Add and return the stack of the controllers, if the blueprint has a section of one."""
        foundation = self._foundation
        spec, observability = foundation.blueprint.spec, foundation.blueprint.spec.observability
        shift = shift_configuration_of(foundation.blueprint, foundation.plan)
        if not controllers_of(spec) or observability is None:
            return None
        from stacks.operations_stack import OperationsStack

        stack = OperationsStack(
            foundation.app,
            foundation.stack_name("Operations"),
            platform=foundation.blueprint.metadata.name,
            cluster=cluster,
            on_ecs=on_ecs,
            spec=spec,
            shift=shift,
            batch=foundation.data.batch,
            observability=observability,
            vpc=foundation.network.vpc,
            encryption_key=foundation.data.encryption_key,
            env=foundation.env,
        )
        for each in after:
            stack.add_stack_dependency(each)
        return stack
