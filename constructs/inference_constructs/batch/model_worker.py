"""A worker of a model's batch queues: its settings and permissions, for every kind of compute."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from aws_cdk import aws_iam as iam
from aws_cdk import aws_stepfunctions as sfn

from inference_constructs.batch.batch_shard_queue import BatchShardQueue
from inference_constructs.batch.batch_store import BatchStore
from inference_constructs.batch.team_isolation import TeamInputs

if TYPE_CHECKING:  # platforms without a front door need not import the services that it uses
    from inference_constructs.front_door.platform_keys import PlatformKeySecret

#: Reason for the wildcards in its policy.
WILDCARDS = "The names of the objects of jobs and teams are not known at deployment."


@dataclass(frozen=True)
class ModelWorker:
    """A worker of one model."""

    model: str
    """Name of the model."""
    queue: BatchShardQueue
    """Queue of the model's shards."""
    environment: Mapping[str, str]
    """Environment variables, as `batch.worker` of the runtime reads them."""
    store: BatchStore
    """Tables and bucket of batch jobs."""
    state_machine: sfn.IStateMachine
    """State machine that waits for each shard's result."""
    inputs: TeamInputs
    """Inputs of the teams, of which it reads images."""
    limited: bool = False
    """Whether the capacity shift limits the places of the model."""
    keys: PlatformKeySecret | None = None
    """Its keys for the front door. None if it calls the model itself."""

    def grant_run(self, grantee: iam.IGrantable) -> list[iam.Grant]:
        """Allow all actions of the worker.

        Parameters
        ----------
        grantee
            Task role or pod identity of the worker.
        """
        grants = [
            self.queue.grant_consume(grantee),
            self._grant_task_response(grantee),
            # A worker writes progress to a table of its own: it cannot change the records of jobs.
            *self.store.grant_work(grantee, self.model),
            self.store.grant_encrypt_decrypt(grantee),
            *self.inputs.grant_read(grantee),
        ]
        if self.limited:
            grants += [
                self.store.grant_read_ceiling(grantee, self.model),
                self.queue.grant_read_attributes(grantee),
            ]
        if self.keys:
            grants += self.keys.grant_read(grantee)
        return grants

    def _grant_task_response(self, grantee: iam.IGrantable) -> iam.Grant:
        """Allow results and heartbeats of shards.

        A shard is a child execution of the map, which belongs to the state machine `name/label`
        (https://docs.aws.amazon.com/step-functions/latest/dg/concepts-examine-map-run.html). No document says
        whether AWS evaluates that ARN or the parent's, so both are allowed. `grant_task_response` of CDK
        allows the parent's only (https://github.com/aws/aws-cdk/issues/8486).
        """
        machine = self.state_machine.state_machine_arn
        return iam.Grant.add_to_principal(
            grantee=grantee,
            actions=["states:SendTaskSuccess", "states:SendTaskFailure", "states:SendTaskHeartbeat"],
            resource_arns=[machine, f"{machine}/*"],
        )


@dataclass(frozen=True)
class WorkerCount:
    """Number of workers of a model."""

    minimum: int
    maximum: int
    """`minimum`, `maximum`: Minimum and maximum. If they differ, the number follows the queue."""
    shards: int
    """Number of shards that one worker processes at the same time."""

    @property
    def follows_the_queue(self) -> bool:
        """Whether the number of workers follows the queue."""
        return self.minimum < self.maximum
