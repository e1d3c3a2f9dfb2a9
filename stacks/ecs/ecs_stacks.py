"""The stacks of a platform whose containers run on Amazon ECS."""

from __future__ import annotations

from inference_blueprints.render.ecs.ecs_limits import runs_commands
from inference_blueprints.render.ecs.ecs_target import EcsTarget
from inference_blueprints.serving.nodes.ecs_capacity import managed_pools, measured_pools
from inference_blueprints.serving.types.front_door import DoorPlan
from inference_blueprints.spec.types import EcsBatchWorkers
from inference_catalog.ecs_hosts import ecs_host_image
from stacks.door_compute import DoorAccess
from stacks.ecs.capacity_stack import EcsCapacityStack
from stacks.ecs.cluster_stack import EcsClusterStack
from stacks.ecs.discovery_stack import DiscoveryStack
from stacks.ecs.front_door_tasks import DoorTasks
from stacks.ecs.model_stack import EcsModelStack, EcsPlace
from stacks.shared_parts import model_addresses
from stacks.target_stacks import TargetStacks
from stacks.worker_tasks import WorkerTasks

#: Days for which logs are kept without `observability`.
_LOG_DAYS = 90


class EcsStacks(TargetStacks):
    """Cluster, discovery store, pools and models on one ECS cluster, and batch workers on AWS Fargate."""

    def add(self) -> WorkerTasks:
        """Add every stack that runs models, in deployment order, and return the compute of batch workers."""
        cluster = self._add_cluster()
        discovery = self._add_discovery(cluster) if self._foundation.plan.has_frontends else None
        if discovery:
            self.discovery_services = discovery.services
        capacity = self._add_capacity(cluster)
        door = self._add_front_door(lambda plan: self._door_tasks(plan, cluster), after=[capacity])
        models = self._add_models(cluster, discovery, door, after=capacity)
        self._add_metrics(cluster, after=capacity)
        shares = any(pool.shared is not None for pool in self._foundation.blueprint.spec.pools)
        operations = self._add_operations(
            cluster.controlled, on_ecs=True, after=[capacity] if shares else models
        )
        if shares and operations:
            # The shift makes room for a new model in a full pool. Until then, its tasks find no place.
            for each in models:
                each.add_stack_dependency(operations)
        network = self._foundation.network
        return WorkerTasks(network.models.gateway, EcsBatchWorkers(), network.vpc)

    def _add_cluster(self) -> EcsClusterStack:
        """Add the cluster."""
        foundation = self._foundation
        return EcsClusterStack(
            foundation.app,
            foundation.stack_name("Cluster"),
            cluster_name=foundation.blueprint.metadata.name,
            vpc=foundation.network.vpc,
            load_balancer_security_group=foundation.network.models.security_group,
            model_ports={
                deployment.target_port for model in foundation.plan.models for deployment in model.deployments
            },
            insights=foundation.blueprint.spec.observability is not None,
            encryption_key=foundation.data.encryption_key,
            runs_commands=runs_commands(foundation.blueprint),
            retention_days=self._log_days(),
            env=foundation.env,
        )

    def _log_days(self) -> int:
        """Return the number of days for which logs are kept."""
        observability = self._foundation.blueprint.spec.observability
        return observability.logs.retention_days if observability else _LOG_DAYS

    def _add_capacity(self, cluster: EcsClusterStack) -> EcsCapacityStack:
        """Add the pools."""
        foundation = self._foundation
        stack = EcsCapacityStack(
            foundation.app,
            foundation.stack_name("Capacity"),
            cluster_name=cluster.cluster_name,
            pools=foundation.blueprint.spec.pools,
            managed_pools=managed_pools(foundation.blueprint, foundation.plan),
            plan=foundation.plan,
            image=ecs_host_image(),
            vpc=foundation.network.vpc,
            members=cluster.members,
            instance_tags=foundation.tags,
            env=foundation.env,
        )
        stack.add_stack_dependency(cluster)
        return stack

    def _add_discovery(self, cluster: EcsClusterStack) -> DiscoveryStack:
        """Add the store in which workers and frontends find each other."""
        foundation = self._foundation
        stack = DiscoveryStack(
            foundation.app,
            foundation.stack_name("Discovery"),
            platform=foundation.blueprint.metadata.name,
            releases=[
                deployment.release
                for model in foundation.plan.models
                if model.has_frontends
                for deployment in model.deployments
            ],
            cluster_name=cluster.cluster_name,
            vpc=foundation.network.vpc,
            members=cluster.members,
            encryption_key=foundation.data.encryption_key,
            env=foundation.env,
        )
        stack.add_stack_dependency(cluster)
        return stack

    def _door_tasks(self, door: DoorPlan, cluster: EcsClusterStack) -> DoorTasks:
        """Return what runs the front door."""
        foundation = self._foundation
        return DoorTasks(
            door,
            cluster_name=cluster.cluster_name,
            vpc=foundation.network.vpc,
            vpc_cidr=foundation.network.vpc_cidr,
            members=cluster.members,
            gateway=foundation.network.models.gateway,
            encryption_key=foundation.data.encryption_key,
            retention_days=self._log_days(),
        )

    def _add_models(
        self,
        cluster: EcsClusterStack,
        discovery: DiscoveryStack | None,
        door: DoorAccess | None,
        *,
        after: EcsCapacityStack,
    ) -> list[EcsModelStack]:
        """Add one stack per model."""
        foundation = self._foundation
        spec = foundation.blueprint.spec
        place = EcsPlace(
            cluster_name=cluster.cluster_name,
            vpc=foundation.network.vpc,
            members=cluster.members,
            discovery_secret_arn=discovery.client_secret_arn if discovery else None,
            retention_days=self._log_days(),
            certificate_arns=foundation.certificate_arns,
        )
        stacks = []
        for model in spec.models:
            stack = EcsModelStack(
                foundation.app,
                foundation.stack_name(f"Model-{model.name}"),
                place=place,
                target=EcsTarget(foundation.blueprint, foundation.plan),
                plan=foundation.plan.model(model.name),
                weights=model.weights,
                weights_bucket_name=foundation.data.weights_bucket_name,
                encryption_key=foundation.data.encryption_key,
                gateway=foundation.network.models.gateway,
                addresses=model_addresses(
                    spec, model, foundation.network.models.gateway, door.target_group_arn if door else None
                ),
                registries=door.registries if door else {},
                env=foundation.env,
            )
            stack.add_stack_dependency(after)
            if discovery:
                stack.add_stack_dependency(discovery)
            stacks.append(stack)
        return stacks

    def _add_metrics(self, cluster: EcsClusterStack, *, after: EcsCapacityStack) -> None:
        """Add the task that measures the platform, if the blueprint has the section."""
        foundation = self._foundation
        spec = foundation.blueprint.spec
        if spec.observability is None:
            return
        from stacks.ecs.metrics_stack import EcsMetricsStack

        stack = EcsMetricsStack(
            foundation.app,
            foundation.stack_name("Observability"),
            cluster_name=cluster.cluster_name,
            vpc=foundation.network.vpc,
            members=cluster.members,
            plan=foundation.plan,
            spec=spec,
            measured_pools=measured_pools(foundation.blueprint, foundation.plan),
            observability=spec.observability,
            gateway=foundation.network.models.gateway,
            encryption_key=foundation.data.encryption_key,
            certificate_arns=foundation.certificate_arns,
            canary_keys=foundation.platform_keys.get("canary"),
            env=foundation.env,
        )
        stack.add_stack_dependency(after)
