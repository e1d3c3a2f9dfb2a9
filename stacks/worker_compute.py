"""The compute of batch workers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2

from inference_constructs.network import Gateway

if TYPE_CHECKING:  # platforms without batch need not import the services that these use
    from inference_constructs.batch import ModelWorker, WorkerCount, WorkerImage


class WorkerCompute(ABC):
    """Runs batch workers, for example as pods of a cluster or as tasks of a service.

    gateway: The models' load balancer, which workers call.
    """

    #: Whether the image must exist before the workers can be deployed.
    waits_for_image: ClassVar[bool]

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    @abstractmethod
    def add_workers(
        self, stack: cdk.Stack, workers: Sequence[ModelWorker], count: WorkerCount, image: WorkerImage
    ) -> None:
        """Add the workers of each model and their scaling.

        stack: Stack of batch.
        workers: One worker per model.
        count: Minimum and maximum number of workers per model.
        image: Image of all workers.
        """

    def _admit(self, stack: cdk.Stack, security_group_id: str) -> None:
        """Let workers with this security group call the models."""
        ec2.CfnSecurityGroupIngress(
            stack,
            "WorkersIngress",
            description="Batch workers",
            from_port=self._gateway.port,
            to_port=self._gateway.port,
            group_id=self._gateway.security_group_id,
            ip_protocol="tcp",
            source_security_group_id=security_group_id,
        )
