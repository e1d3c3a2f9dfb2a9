"""How the deployment units of a platform depend on one another."""

from __future__ import annotations

import aws_cdk as cdk

from inference_blueprints.catalog import image_cache
from inference_blueprints.catalog.releases import NodeImage
from inference_blueprints.catalog.tags import PLATFORM_TAG
from inference_blueprints.serving.types import SecretValue, ServingPlan
from inference_blueprints.spec.types import Blueprint, EksCluster
from inference_blueprints.spec.zones import platform_zones
from inference_constructs.serving.model_route import listener_priorities
from inference_constructs.signals.signal_access import SignalAccess
from stacks.batch_stack import BatchStack
from stacks.capacity_stack import CapacityStack
from stacks.cluster_stack import ClusterStack
from stacks.data_stack import DataStack
from stacks.image_cache_stack import ImageCacheStack
from stacks.model_stack import ModelStack
from stacks.network_stack import NetworkStack
from stacks.platform_stack import PlatformStack
from stacks.stores_stack import StoresStack


class Platform:
    """Every stack that a blueprint asks for, in deployment order.

    What one stack needs of another is passed as a value, and CDK derives the order from that. Where only the
    order matters (a pool needs Karpenter, a model needs pools) it is said here.

    Parameters
    ----------
    app
        The app that the stacks become part of.
    blueprint
        The platform.
    plan
        Its serving plan.
    """

    def __init__(self, app: cdk.App, blueprint: Blueprint, plan: ServingPlan) -> None:
        self._app = app
        self._name = blueprint.metadata.name
        self._spec = blueprint.spec
        self._plan = plan
        self._releases = blueprint.releases
        environment = self._spec.environment
        self._env = cdk.Environment(account=environment.account, region=environment.region)
        self._tags = {**environment.tags, PLATFORM_TAG: self._name}
        for key, value in self._tags.items():
            cdk.Tags.of(app).add(key, value)
        data = DataStack(
            app,
            self._id("Data"),
            retain=environment.data_removal == "retain",
            batch=self._spec.batch,
            teams=self._spec.teams,
            platform=self._name,
            signal_store=self._spec.signal_store,
            env=self._env,
        )
        network = NetworkStack(
            app,
            self._id("Network"),
            network=self._spec.network,
            platform=self._name,
            availability_zones=platform_zones(environment),
            log_bucket=data.log_bucket,
            env=self._env,
        )
        signals = self._add_stores(data, network)
        if self._spec.cluster.eks:
            cluster = self._add_cluster(self._spec.cluster.eks, data, network)
            nodes = self._add_nodes(self._spec.cluster.eks, cluster, network)
            self._add_models(cluster, network, data, after=nodes)
            self._add_image_cache(self._spec.cluster.eks, network)
            self._add_batch(data, network, cluster, signals, after=nodes)
        self._mark_stacks()

    def _mark_stacks(self) -> None:
        """Tag the stacks themselves: whoever takes the platform away knows them by that."""
        for stack in self._app.node.children:
            if isinstance(stack, cdk.Stack):
                stack.add_stack_tag(PLATFORM_TAG, self._name)

    def _id(self, stack: str) -> str:
        """Return the name of a stack: two platforms never meet in one account."""
        return f"{self._name}-{stack}"

    def _add_cluster(self, eks: EksCluster, data: DataStack, network: NetworkStack) -> ClusterStack:
        """Add the control plane with the platform's own nodes."""
        deployments = [deployment for model in self._plan.models for deployment in model.deployments]
        return ClusterStack(
            self._app,
            self._id("Cluster"),
            eks=eks,
            add_on_versions=self._releases.add_ons,
            cluster_name=self._name,
            vpc=network.vpc,
            load_balancer_security_group=network.models.security_group,
            model_ports={deployment.entry_point.ports[0].number for deployment in deployments},
            secrets_key=data.encryption_key,
            secrets_in_pods=self._has_secrets(),
            instance_tags=self._tags,
            env=self._env,
        )

    def _has_secrets(self) -> bool:
        """Return whether pods read secrets of Secrets Manager."""
        environments = self._plan.environments
        return any(isinstance(value, SecretValue) for each in environments for value in each.values())

    def _add_nodes(self, eks: EksCluster, cluster: ClusterStack, network: NetworkStack) -> CapacityStack:
        """Add the controllers, then the pools, which are objects of theirs."""
        platform = PlatformStack(
            self._app,
            self._id("Platform"),
            access=cluster.access,
            charts=self._releases.charts,
            vpc=network.vpc,
            pools=self._spec.pools,
            interruption_queue_name=cluster.karpenter.queue.queue_name,
            secrets_in_pods=self._has_secrets(),
            inference_pools=any(each.picker for model in self._plan.models for each in model.deployments),
            spanning_stacks=self._plan.spanning_stacks,
            env=self._env,
        )
        capacity = CapacityStack(
            self._app,
            self._id("Capacity"),
            access=cluster.access,
            charts=self._releases.charts,
            pools=self._spec.pools,
            queueing=self._spec.queueing,
            plan=self._plan,
            image=NodeImage(eks.version, self._releases.bottlerocket),
            held_images=self._releases.held_pools,
            vpc=network.vpc,
            node_role_name=cluster.karpenter.node_role.ref,
            subnet_ids=cluster.subnet_ids,
            security_group_id=cluster.security_group_id,
            instance_tags=self._tags,
            env=self._env,
        )
        capacity.add_stack_dependency(platform)
        return capacity

    def _add_models(
        self, cluster: ClusterStack, network: NetworkStack, data: DataStack, *, after: cdk.Stack
    ) -> None:
        """Add one stack a model."""
        priorities = listener_priorities([model.name for model in self._spec.models])
        for model in self._spec.models:
            stack = ModelStack(
                self._app,
                self._id(f"Model-{model.name}"),
                access=cluster.access,
                plan=self._plan.model(model.name),
                weights=model.weights,
                weights_bucket_name=data.weights_bucket_name,
                encryption_key=data.encryption_key,
                gateway=network.models.gateway,
                priority=priorities[model.name],
                env=self._env,
            )
            stack.add_stack_dependency(after)

    def _add_stores(self, data: DataStack, network: NetworkStack) -> SignalAccess | None:
        """Add what holds signals, where there are any."""
        if self._spec.signal_store is None or data.signal_history is None:
            return None
        stores = StoresStack(
            self._app,
            self._id("Stores"),
            signal_store=self._spec.signal_store,
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
        data: DataStack,
        network: NetworkStack,
        cluster: ClusterStack,
        signals: SignalAccess | None,
        *,
        after: cdk.Stack,
    ) -> None:
        """Add what runs jobs, where there are queues for them."""
        if self._spec.batch and data.batch:
            stack = BatchStack(
                self._app,
                self._id("Batch"),
                platform=self._name,
                batch=self._spec.batch,
                teams=self._spec.teams,
                models=self._spec.models,
                plan=self._plan,
                store=data.batch,
                signal_store=self._spec.signal_store,
                signals=signals,
                vpc=network.vpc,
                vpc_cidr=network.vpc_cidr,
                access=cluster.access,
                cluster_security_group_id=cluster.security_group_id,
                charts=self._releases.charts,
                gateway=network.models.gateway,
                env=self._env,
            )
            stack.add_stack_dependency(after)

    def _add_image_cache(self, eks: EksCluster, network: NetworkStack) -> None:
        """Add what bakes snapshots, where a pool asks for one; no other stack needs it."""
        pools = [pool for pool in self._spec.pools if pool.image_acceleration.ebs_snapshot]
        if pools:
            ImageCacheStack(
                self._app,
                self._id(image_cache.STACK),
                platform=self._name,
                pools=pools,
                image=NodeImage(eks.version, self._releases.bottlerocket),
                vpc=network.vpc,
                tags=self._tags,
                env=self._env,
            )
