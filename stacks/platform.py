"""The stacks of a platform and their dependencies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import aws_cdk as cdk

from inference_blueprints.serving.scaling.shift_of_plan import shift_configuration_of
from inference_blueprints.serving.types import ServingPlan
from inference_blueprints.spec.derived import platform_zones
from inference_blueprints.spec.types import Blueprint
from inference_catalog.tags import PLATFORM_TAG
from stacks.data_stack import DataStack
from stacks.network_stack import NetworkStack
from stacks.target_stacks import Foundation, TargetStacks, stack_name
from stacks.worker_compute import WorkerCompute

if TYPE_CHECKING:  # only some blueprints need the services that they import
    from inference_constructs.front_door import PlatformKeySecret
    from inference_constructs.signals import SignalAccess
    from stacks.batch_stack import BatchDoor
    from stacks.certificates_stack import CertificatesStack
    from stacks.streaming_stack import StreamingDoor

#: Days for which logs of streaming are kept without `observability`.
_LOG_DAYS = 90


def _ecs() -> type[TargetStacks]:
    from stacks.ecs.ecs_stacks import EcsStacks

    return EcsStacks


def _eks() -> type[TargetStacks]:
    from stacks.eks.eks_stacks import EksStacks

    return EksStacks


#: What imports the stacks of each target, by its key in the blueprint's section ``cluster``. A platform
#: imports the services of its own target only.
TARGETS: dict[str, Callable[[], type[TargetStacks]]] = {"ecs": _ecs, "eks": _eks}


class PlatformStacks:
    """All stacks of a blueprint, in deployment order.

    Values of one stack are passed to another, and CDK derives the order from these references. If only the
    order matters (a pool needs Karpenter, a model needs pools), the dependency is added here.

    app: The app that the stacks become part of.
    blueprint: The platform.
    """

    def __init__(self, app: cdk.App, blueprint: Blueprint, plan: ServingPlan) -> None:
        self._app = app
        self._name = blueprint.metadata.name
        self._blueprint, self._spec = blueprint, blueprint.spec
        environment = self._spec.environment
        self._env = cdk.Environment(account=environment.account, region=environment.region)
        self._tags = {**environment.tags, PLATFORM_TAG: self._name}
        for key, value in self._tags.items():
            cdk.Tags.of(app).add(key, value)
        data = DataStack(
            app,
            stack_name(self._name, "Data"),
            retain=environment.data_removal == "retain",
            batch=self._spec.batch,
            teams=self._spec.teams,
            platform=self._name,
            signal_store=self._spec.signal_store,
            streaming=self._spec.streaming,
            door_usage=self._spec.front_door.usage if self._spec.front_door else None,
            env=self._env,
        )
        network = NetworkStack(
            app,
            stack_name(self._name, "Network"),
            network=self._spec.network,
            platform=self._name,
            availability_zones=platform_zones(environment),
            log_bucket=data.log_bucket,
            env=self._env,
        )
        signals = self._add_stores(data, network)
        target = TARGETS[self._spec.cluster.chosen]()
        certificates = self._add_certificates(plan)
        keys = self._add_platform_keys(data)
        stacks = target(
            Foundation(app, blueprint, plan, self._env, self._tags, data, network, certificates, keys)
        )
        compute = stacks.add()
        self._add_batch(plan, data, network, signals, compute=compute, door=stacks.front_door, keys=keys)
        self._add_streaming(data, network, signals, self._streaming_door(plan, keys), stacks.front_door)
        self._add_monitoring(plan, stacks)
        self._mark_stacks()

    def _mark_stacks(self) -> None:
        """Tag the stacks themselves: `blueprints destroy` finds them by these tags."""
        for stack in self._app.node.children:
            if isinstance(stack, cdk.Stack):
                stack.add_stack_tag(PLATFORM_TAG, self._name)

    def _add_certificates(self, plan: ServingPlan) -> CertificatesStack | None:
        """Add the certificates with which callers of models are known, if the blueprint has a front door."""
        if plan.front_door is None:
            return None
        from stacks.certificates_stack import CertificatesStack

        return CertificatesStack(
            self._app,
            stack_name(self._name, "Certificates"),
            platform=self._name,
            plan=plan,
            env=self._env,
        )

    def _add_platform_keys(self, data: DataStack) -> Mapping[str, PlatformKeySecret]:
        """Add the keys of the platform's own programs. Return the secret of each, by `KeyOwner.tag`."""
        if data.front_door is None:
            return {}
        from inference_blueprints.serving.front_door.ways import key_owners

        owners = key_owners(self._spec)
        if not owners:
            return {}
        from stacks.platform_keys_stack import PlatformKeysStack

        stack = PlatformKeysStack(
            self._app,
            stack_name(self._name, "PlatformKeys"),
            platform=self._name,
            owners=owners,
            store=data.front_door,
            env=self._env,
        )
        return stack.secrets

    def _add_stores(self, data: DataStack, network: NetworkStack) -> SignalAccess | None:
        """Add the signal store, if the blueprint has one."""
        if self._spec.signal_store is None or data.signal_history is None:
            return None
        from stacks.stores_stack import StoresStack

        stores = StoresStack(
            self._app,
            stack_name(self._name, "Stores"),
            signal_store=self._spec.signal_store,
            stream_signals={job.name: job.signal.name for job in self._spec.streaming},
            vpc=network.vpc,
            vpc_cidr=network.vpc_cidr,
            encryption_key=data.encryption_key,
            history_bucket_name=data.signal_history,
            retain=self._spec.environment.data_removal == "retain",
            env=self._env,
        )
        return stores.signals

    def _add_batch(
        self,
        plan: ServingPlan,
        data: DataStack,
        network: NetworkStack,
        signals: SignalAccess | None,
        *,
        compute: WorkerCompute,
        door: cdk.Stack | None,
        keys: Mapping[str, PlatformKeySecret],
    ) -> None:
        """Add the stack that runs batch jobs, if the blueprint has queues."""
        batch = self._spec.batch
        if batch is None or data.batch is None:
            return
        from stacks.batch_stack import BatchStack

        if batch.workers.ecs:
            from stacks.worker_tasks import WorkerTasks

            compute = WorkerTasks(network.models.gateway, batch.workers.ecs, network.vpc)
        shift = shift_configuration_of(self._blueprint, plan)
        stack = BatchStack(
            self._app,
            stack_name(self._name, "Batch"),
            platform=self._name,
            blueprint=self._blueprint,
            batch=batch,
            plan=plan,
            store=data.batch,
            signals=signals,
            vpc=network.vpc,
            vpc_cidr=network.vpc_cidr,
            compute=compute,
            gateway=network.models.gateway,
            limited=sorted(shift.batch_places) if shift and shift.action == "shift" else (),
            door=self._batch_door(plan, data, keys),
            env=self._env,
        )
        if door:
            # Nothing of its template refers to the stack of the door.
            stack.add_stack_dependency(door)

    @staticmethod
    def _batch_door(
        plan: ServingPlan, data: DataStack, keys: Mapping[str, PlatformKeySecret]
    ) -> BatchDoor | None:
        """Return how batch calls the front door, if there is one."""
        if plan.front_door is None or data.front_door is None:
            return None
        from stacks.batch_stack import BatchDoor

        return BatchDoor(
            host_name=plan.front_door.host_name,
            keys=keys["batch"],
            time_zone=plan.front_door.configuration.time_zone,
            has_keys=plan.front_door.configuration.api_keys,
            store=data.front_door,
        )

    def _streaming_door(
        self, plan: ServingPlan, keys: Mapping[str, PlatformKeySecret]
    ) -> StreamingDoor | None:
        """Return how streaming jobs call the front door, if there is one."""
        if plan.front_door is None:
            return None
        from inference_blueprints.serving.front_door.ways import key_owners
        from stacks.streaming_stack import StreamingDoor

        jobs = {
            owner.name: keys[owner.tag] for owner in key_owners(self._spec) if owner.caller == "streaming"
        }
        return StreamingDoor(plan.front_door.host_name, jobs) if jobs else None

    def _add_streaming(
        self,
        data: DataStack,
        network: NetworkStack,
        signals: SignalAccess | None,
        door: StreamingDoor | None,
        after: cdk.Stack | None,
    ) -> None:
        """Add the stack that turns events into signals, if the blueprint has streaming jobs.

        after: The stack of the front door. None without one.
        """
        if not self._spec.streaming or self._spec.kafka is None or signals is None:
            return
        from stacks.streaming_stack import StreamingStack

        observability = self._spec.observability
        stack = StreamingStack(
            self._app,
            stack_name(self._name, "Streaming"),
            platform=self._name,
            spec=self._spec,
            kafka=self._spec.kafka,
            alarms=observability.alarms if observability else None,
            vpc=network.vpc,
            vpc_cidr=network.vpc_cidr,
            gateway=network.models.gateway,
            signals=signals,
            door=door,
            encryption_key=data.encryption_key,
            retention_days=observability.logs.retention_days if observability else _LOG_DAYS,
            env=self._env,
        )
        if after:
            # A job calls the door as soon as it starts, and its template has no reference to that stack.
            stack.add_stack_dependency(after)

    def _add_monitoring(self, plan: ServingPlan, target: TargetStacks) -> None:
        """Add alarms and dashboards, if the blueprint has the section that collects their metrics."""
        if self._spec.observability is None:
            return
        from inference_blueprints.render.monitoring.recording_rules import late_latencies
        from stacks.monitoring_stack import MonitoringStack

        stack = MonitoringStack(
            self._app,
            stack_name(self._name, "Monitoring"),
            platform=self._name,
            plan=plan,
            on_ecs=self._spec.cluster.ecs is not None,
            late=late_latencies(plan, {each.name: each.objectives for each in self._spec.models}),
            canary=self._spec.observability.canary,
            alarms=self._spec.observability.alarms,
            usage_stream=target.usage_stream,
            discovery_services=target.discovery_services,
            env=self._env,
        )
        if target.front_door:
            # CDK derives no order from the output of a stack that is named.
            stack.add_stack_dependency(target.front_door)
