"""Batch workers as pods of the cluster or as tasks of AWS Fargate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2

from inference_blueprints.catalog.charts import Chart
from inference_blueprints.spec.types import EcsBatchWorkers
from inference_blueprints.targets.eks.batch_worker_values import QueueScaling, batch_worker_values
from inference_blueprints.targets.eks.chart_values import chart_values
from inference_constructs.batch.model_worker import ModelWorker, WorkerCount
from inference_constructs.batch.queue_scaler import QueueScaler
from inference_constructs.batch.worker_deployment import WorkerDeployment
from inference_constructs.batch.worker_image import WorkerImage
from inference_constructs.ecs.worker_cluster import WorkerCluster
from inference_constructs.ecs.worker_service import WorkerService
from inference_constructs.eks.kubectl_access import KubectlAccess
from inference_constructs.network.gateway import Gateway


def add_pods(
    stack: cdk.Stack,
    workers: Sequence[ModelWorker],
    count: WorkerCount,
    *,
    image: WorkerImage,
    access: KubectlAccess,
    security_group_id: str,
    gateway: Gateway,
    charts: Mapping[str, Chart],
) -> None:
    """Add a release of workers a model, and what scales them where they are scaled.

    Parameters
    ----------
    stack
        The stack of batch.
    workers
        One worker for each model.
    count
        Minimum and maximum number of workers for each model.
    image
        Theirs.
    access, security_group_id
        The cluster where they run, and its security group, which pods carry.
    gateway
        The models' load balancer.
    charts
        Charts by name.
    """
    cluster = access.import_cluster(stack)
    _admit(stack, security_group_id, gateway)
    chart = charts["batch-worker"]
    scaler = None
    if count.follows_the_queue:
        scaler = QueueScaler(
            stack,
            "Scaler",
            cluster_name=access.cluster_name,
            cluster=cluster,
            chart=charts["keda"],
            values=chart_values("keda", cluster_name=access.cluster_name, namespace=chart.namespace),
            queues=[worker.queue for worker in workers],
        )
    for worker in workers:
        release = WorkerDeployment(
            stack,
            f"Workers-{worker.model}",
            cluster_name=access.cluster_name,
            cluster=cluster,
            chart=chart,
            # No deployment's release has a point in its name.
            release=f"{worker.model}.batch",
            values=batch_worker_values(
                image=image.uri,
                environment=worker.environment,
                workers=_number(worker, count, stack.region),
            ),
            worker=worker,
        )
        if scaler:
            release.node.add_dependency(scaler)


def add_tasks(
    stack: cdk.Stack,
    workers: Sequence[ModelWorker],
    count: WorkerCount,
    ecs: EcsBatchWorkers,
    *,
    image: WorkerImage,
    vpc: ec2.IVpc,
    gateway: Gateway,
) -> None:
    """Add a service of workers a model.

    Parameters
    ----------
    stack
        The stack of batch.
    workers
        One worker for each model.
    count
        Minimum and maximum number of workers for each model.
    ecs
        The blueprint's section.
    image
        Theirs; deployment waits for it, for a service is there when its tasks are.
    vpc
        Where they run.
    gateway
        The models' load balancer.
    """
    cluster = WorkerCluster(
        stack,
        "WorkerCluster",
        vpc=vpc,
        gateway=gateway,
    )
    _admit(stack, cluster.security_group.security_group_id, gateway)
    for worker in workers:
        tasks = WorkerService(
            stack,
            f"Tasks-{worker.model}",
            cluster=cluster,
            repository=image.repository,
            tag=image.tag,
            worker=worker,
            count=count,
            spot_percent=ecs.spot_percent,
        )
        tasks.service.node.add_dependency(image.build)


def _admit(stack: cdk.Stack, security_group_id: str, gateway: Gateway) -> None:
    """Let workers call the models, whoever else may."""
    ec2.CfnSecurityGroupIngress(
        stack,
        "WorkersIngress",
        description="Batch workers",
        from_port=gateway.port,
        to_port=gateway.port,
        group_id=gateway.security_group_id,
        ip_protocol="tcp",
        source_security_group_id=security_group_id,
    )


def _number(worker: ModelWorker, count: WorkerCount, region: str) -> int | QueueScaling:
    """Return a fixed number of workers, or how they are scaled."""
    if not count.follows_the_queue:
        return count.most
    return QueueScaling(
        min=count.least,
        max=count.most,
        messages=count.shards,
        queue_url=worker.queue.queue_url,
        region=region,
    )
