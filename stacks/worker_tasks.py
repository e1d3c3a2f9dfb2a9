"""Batch workers as AWS Fargate tasks."""

from __future__ import annotations

from collections.abc import Sequence

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2

from inference_blueprints.spec.types import EcsBatchWorkers
from inference_constructs.batch import ModelWorker, WorkerCount, WorkerImage
from inference_constructs.ecs import WorkerCluster, WorkerService
from inference_constructs.network import Gateway
from stacks.worker_compute import WorkerCompute


class WorkerTasks(WorkerCompute):
    """One ECS service of Fargate tasks per model.

    gateway: The models' load balancer, which workers call.
    ecs: The blueprint's section ``batch.workers.ecs``.
    """

    #: A service becomes stable only when its tasks run, and the tasks need the image.
    waits_for_image = True

    def __init__(self, gateway: Gateway, ecs: EcsBatchWorkers, vpc: ec2.IVpc) -> None:
        super().__init__(gateway)
        self._ecs = ecs
        self._vpc = vpc

    def add_workers(
        self, stack: cdk.Stack, workers: Sequence[ModelWorker], count: WorkerCount, image: WorkerImage
    ) -> None:
        """Add one service per model."""
        cluster = WorkerCluster(stack, "WorkerCluster", vpc=self._vpc, gateway=self._gateway)
        self._admit(stack, cluster.security_group.security_group_id)
        for worker in workers:
            tasks = WorkerService(
                stack,
                f"Tasks-{worker.model}",
                cluster=cluster,
                repository=image.repository,
                tag=image.tag,
                worker=worker,
                count=count,
                spot_percent=self._ecs.spot_percent,
            )
            tasks.service.node.add_dependency(image.build)
