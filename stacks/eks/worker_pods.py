"""Batch workers as pods of the cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import aws_cdk as cdk
from aws_cdk import aws_iam as iam

from inference_blueprints.render.eks.batch_worker_values import QueueScaling, batch_worker_values
from inference_catalog.charts import Chart
from inference_constructs.eks import KubectlAccess, PodScaler
from inference_constructs.network import Gateway
from stacks.worker_compute import WorkerCompute

if TYPE_CHECKING:  # platforms without batch need not import the services that these use
    from inference_constructs.batch import ModelWorker, WorkerCount, WorkerImage


class WorkerPods(WorkerCompute):
    """One Helm release of pods per model, which the platform's KEDA scales if their number follows the queue.

    gateway: The models' load balancer, which workers call.
    access: The cluster.
    security_group_id: The cluster's security group, which its pods have.
    charts: Charts by name.
    nodes: Stack of the nodes that run the pods.
    scaler: The platform's KEDA. None if nothing on the platform scales.
    """

    #: A release can be installed before the image exists.
    waits_for_image = False

    def __init__(
        self,
        gateway: Gateway,
        *,
        access: KubectlAccess,
        security_group_id: str,
        charts: Mapping[str, Chart],
        nodes: cdk.Stack,
        scaler: PodScaler | None,
    ) -> None:
        super().__init__(gateway)
        self._access = access
        self._security_group_id = security_group_id
        self._charts = charts
        self._nodes = nodes
        self._scaler = scaler

    def add_workers(
        self, stack: cdk.Stack, workers: Sequence[ModelWorker], count: WorkerCount, image: WorkerImage
    ) -> None:
        """Add one release per model, and let KEDA read the queues if the number of pods follows them.

        Raises ValueError if the number of pods follows the queue and the platform has no KEDA.
        """
        from inference_constructs.batch import WorkerDeployment

        stack.add_stack_dependency(self._nodes)
        cluster_name = self._access.cluster_name
        cluster = self._access.import_cluster(stack)
        self._admit(stack, self._security_group_id)
        chart = self._charts["batch-worker"]
        grants: list[iam.Grant] = []
        if count.follows_the_queue:
            if self._scaler is None:
                raise ValueError("the number of workers follows the queue, and the platform has no KEDA")
            reader = self._scaler.role(stack, "Scaler")
            grants = [worker.queue.grant_read_attributes(reader) for worker in workers]
        for worker in workers:
            release = WorkerDeployment(
                stack,
                f"Workers-{worker.model}",
                cluster_name=cluster_name,
                cluster=cluster,
                chart=chart,
                # Names of the deployments' releases contain no dot.
                release=f"{worker.model}.batch",
                values=batch_worker_values(
                    image=image.uri,
                    environment=worker.environment,
                    workers=_number(worker, count, stack.region),
                ),
                worker=worker,
            )
            for grant in grants:
                grant.apply_before(release)


def _number(worker: ModelWorker, count: WorkerCount, region: str) -> int | QueueScaling:
    """Return the fixed number of workers, or their scaling."""
    if not count.follows_the_queue:
        return count.maximum
    return QueueScaling(
        min=count.minimum,
        max=count.maximum,
        messages=count.shards,
        queue_url=worker.queue.queue_url,
        region=region,
    )
