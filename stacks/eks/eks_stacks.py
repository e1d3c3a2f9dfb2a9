"""The stacks of a platform whose containers run on Amazon EKS."""

from __future__ import annotations

from functools import cached_property

import aws_cdk as cdk

from inference_blueprints.render.eks.chart_values import scaled_kinds
from inference_blueprints.serving.scaling.shift_of_plan import shift_configuration_of
from inference_blueprints.serving.types import SecretValue
from inference_blueprints.spec.derived import karpenter_reboots
from inference_blueprints.spec.types import EksCluster
from inference_catalog import image_cache
from inference_catalog.releases import NodeImage
from inference_constructs.eks import PodScaler
from inference_contracts.door_names import DOOR_PORT
from inference_contracts.shift_names import ShiftConfiguration
from stacks.door_compute import DoorAccess
from stacks.eks.capacity_stack import CapacityStack
from stacks.eks.cluster_stack import ClusterStack
from stacks.eks.front_door_pods import DoorPods
from stacks.eks.model_stack import ModelStack
from stacks.eks.platform_stack import PlatformStack
from stacks.eks.worker_pods import WorkerPods
from stacks.shared_parts import model_addresses
from stacks.target_stacks import TargetStacks


class EksStacks(TargetStacks):
    """Control plane, controllers, pools, models and batch workers on one EKS cluster."""

    def add(self) -> WorkerPods:
        """Add every stack that runs models, in deployment order, and return the compute of batch workers."""
        eks = self._foundation.blueprint.spec.cluster.eks
        if eks is None:
            raise ValueError("the blueprint has no section `cluster.eks`")
        cluster = self._add_cluster(eks)
        nodes, scaler = self._add_nodes(eks, cluster)
        self._add_observability(cluster, after=nodes)
        door = self._add_front_door(
            lambda plan: DoorPods(
                plan,
                self._foundation.plan,
                access=cluster.access,
                security_group_id=cluster.security_group_id,
                charts=self._foundation.blueprint.releases.charts,
            ),
            after=[nodes],
        )
        self._add_models(cluster, door, after=nodes)
        self._add_image_cache(eks)
        self._add_operations(cluster.controlled, on_ecs=False, after=[nodes])
        return WorkerPods(
            self._foundation.network.models.gateway,
            access=cluster.access,
            security_group_id=cluster.security_group_id,
            charts=self._foundation.blueprint.releases.charts,
            nodes=nodes,
            scaler=scaler,
        )

    def _add_cluster(self, eks: EksCluster) -> ClusterStack:
        """Add the control plane and the system nodes."""
        deployments = [
            deployment for model in self._foundation.plan.models for deployment in model.deployments
        ]
        observability = self._foundation.blueprint.spec.observability
        return ClusterStack(
            self._foundation.app,
            self._foundation.stack_name("Cluster"),
            eks=eks,
            add_on_versions=self._foundation.blueprint.releases.add_ons,
            cluster_name=self._foundation.blueprint.metadata.name,
            vpc=self._foundation.network.vpc,
            load_balancer_security_group=self._foundation.network.models.security_group,
            model_ports={
                *(deployment.target_port for deployment in deployments),
                *([DOOR_PORT] if self._foundation.plan.front_door else []),
            },
            secrets_key=self._foundation.data.encryption_key,
            secrets_in_pods=self._has_secrets(),
            karpenter_reboots=karpenter_reboots(self._foundation.blueprint.spec),
            instance_tags=self._foundation.tags,
            log_retention_days=observability.logs.retention_days if observability else None,
            env=self._foundation.env,
        )

    @cached_property
    def _acting_shift(self) -> ShiftConfiguration | None:
        """What the capacity shift moves. None if it only observes, or the blueprint has none."""
        shift = shift_configuration_of(self._foundation.blueprint, self._foundation.plan)
        return shift if shift and shift.action == "shift" else None

    def _has_secrets(self) -> bool:
        """Return whether pods read secrets of Secrets Manager."""
        environments = self._foundation.plan.environments
        return any(isinstance(value, SecretValue) for each in environments for value in each.values())

    def _add_nodes(self, eks: EksCluster, cluster: ClusterStack) -> tuple[CapacityStack, PodScaler | None]:
        """Add the controllers, then the pools, which the controllers manage. Return the pools and KEDA."""
        plan = self._foundation.plan
        platform = PlatformStack(
            self._foundation.app,
            self._foundation.stack_name("Platform"),
            access=cluster.access,
            charts=self._foundation.blueprint.releases.charts,
            vpc=self._foundation.network.vpc,
            pools=self._foundation.blueprint.spec.pools,
            interruption_queue_name=cluster.karpenter.queue.queue_name,
            karpenter_reboots=karpenter_reboots(self._foundation.blueprint.spec),
            secrets_in_pods=self._has_secrets(),
            inference_pools=any(each.picker for model in plan.models for each in model.deployments),
            spanning_stacks=plan.spanning_stacks,
            node_systems=plan.node_systems,
            kubernetes_version=eks.version,
            schedulers=plan.schedulers,
            scaled_kinds=scaled_kinds(plan, self._foundation.blueprint.spec.batch),
            env=self._foundation.env,
        )
        capacity = CapacityStack(
            self._foundation.app,
            self._foundation.stack_name("Capacity"),
            access=cluster.access,
            charts=self._foundation.blueprint.releases.charts,
            pools=self._foundation.blueprint.spec.pools,
            queueing=self._foundation.blueprint.spec.queueing,
            plan=self._foundation.plan,
            shifted_queues=[each.pool for each in self._acting_shift.queues] if self._acting_shift else (),
            image=self._node_image(eks),
            held_images=self._foundation.blueprint.releases.held_pools,
            vpc=self._foundation.network.vpc,
            node_role_name=cluster.karpenter.node_role.ref,
            subnet_ids=cluster.subnet_ids,
            security_group_id=cluster.security_group_id,
            instance_tags=self._foundation.tags,
            env=self._foundation.env,
        )
        capacity.add_stack_dependency(platform)
        return capacity, platform.scaler

    def _node_image(self, eks: EksCluster) -> NodeImage:
        """Return the image of nodes whose pool is not held."""
        releases = self._foundation.blueprint.releases
        return NodeImage(eks.version, releases.bottlerocket, releases.al2023)

    def _add_observability(self, cluster: ClusterStack, *, after: cdk.Stack) -> None:
        """Add the stack of metrics, logs and traces, if the blueprint has the section."""
        blueprint = self._foundation.blueprint
        if blueprint.spec.observability is None:
            return
        from stacks.eks.observability_stack import ObservabilityStack

        stack = ObservabilityStack(
            self._foundation.app,
            self._foundation.stack_name("Observability"),
            access=cluster.access,
            observability=blueprint.spec.observability,
            releases=blueprint.releases,
            plan=self._foundation.plan,
            gpu_nodes=any(
                accelerator is not None and accelerator.manufacturer == "nvidia"
                for pool in blueprint.spec.pools
                for accelerator in [pool.types[0].accelerator]
            ),
            encryption_key=self._foundation.data.encryption_key,
            vpc=self._foundation.network.vpc,
            gateway=self._foundation.network.models.gateway,
            spec=blueprint.spec,
            certificate_arn=self._foundation.certificate_arns.get("prometheus"),
            canary_keys=self._foundation.platform_keys.get("canary"),
            env=self._foundation.env,
        )
        stack.add_stack_dependency(after)

    def _add_models(self, cluster: ClusterStack, door: DoorAccess | None, *, after: cdk.Stack) -> None:
        """Add one stack per model."""
        for model in self._foundation.blueprint.spec.models:
            stack = ModelStack(
                self._foundation.app,
                self._foundation.stack_name(f"Model-{model.name}"),
                access=cluster.access,
                plan=self._foundation.plan.model(model.name),
                weights=model.weights,
                weights_bucket_name=self._foundation.data.weights_bucket_name,
                encryption_key=self._foundation.data.encryption_key,
                gateway=self._foundation.network.models.gateway,
                addresses=model_addresses(
                    self._foundation.blueprint.spec,
                    model,
                    self._foundation.network.models.gateway,
                    door.target_group_arn if door else None,
                ),
                observed_platform=self._foundation.blueprint.metadata.name
                if self._foundation.blueprint.spec.observability
                else None,
                shifted=self._acting_shift is not None,
                certificate_arns=self._foundation.certificate_arns,
                env=self._foundation.env,
            )
            stack.add_stack_dependency(after)

    def _add_image_cache(self, eks: EksCluster) -> None:
        """Add the stack that bakes snapshots, if a pool uses one. No other stack depends on it."""
        pools = [
            pool for pool in self._foundation.blueprint.spec.pools if pool.image_acceleration.ebs_snapshot
        ]
        if pools:
            from stacks.eks.image_cache_stack import ImageCacheStack

            ImageCacheStack(
                self._foundation.app,
                self._foundation.stack_name(image_cache.STACK),
                platform=self._foundation.blueprint.metadata.name,
                pools=pools,
                image=self._node_image(eks),
                vpc=self._foundation.network.vpc,
                tags=self._foundation.tags,
                env=self._foundation.env,
            )
