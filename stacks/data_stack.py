"""Data that outlives all other stacks: the key, the buckets and the tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from constructs import Construct

from inference_blueprints.spec.types import Batch, FrontDoorUsage, SignalStore, StreamingJob, Team
from inference_constructs.storage import DataBucket, LogBucket
from inference_contracts.batch_keys import FILES_PREFIX, JOBS_PREFIX, UPLOADS_PREFIX
from inference_contracts.batch_limits import MAX_FILE_DAYS, UPLOAD_DAYS
from inference_contracts.batch_names import batch_role_path
from inference_contracts.streaming_job import STREAMING_HISTORY_PREFIX

if TYPE_CHECKING:  # only some blueprints need the services that it imports
    from inference_constructs.batch import BatchStore
    from inference_constructs.front_door import DoorStore


class DataStack(cdk.Stack):
    """The platform's KMS key, its buckets for weights and logs, and the tables and buckets of batch.

    retain: Whether the data outlives the stack.
    batch, teams: Queues of the jobs to store, if there are any, and teams that write manifests.
    platform, signal_store: `metadata.name`, and the signals whose history is stored, if there are any.
    streaming: Jobs whose history is stored beside that of the signals.
    door_usage: What is kept of the requests through the front door, if there is one.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        retain: bool,
        batch: Batch | None,
        teams: Sequence[Team],
        platform: str,
        signal_store: SignalStore | None,
        streaming: Sequence[StreamingJob],
        door_usage: FrontDoorUsage | None,
        env: cdk.Environment,
    ) -> None:
        super().__init__(scope, construct_id, env=env, termination_protection=True)
        self.encryption_key = kms.Key(
            self,
            "Key",
            description="Weights and Kubernetes secrets of the inference platform",
            enable_key_rotation=True,
            removal_policy=cdk.RemovalPolicy.RETAIN if retain else cdk.RemovalPolicy.DESTROY,
        )
        self.log_bucket = LogBucket(self, "Logs", retain=retain)
        self.weights_bucket = DataBucket(
            self, "Weights", encryption_key=self.encryption_key, log_bucket=self.log_bucket, retain=retain
        )
        output = cdk.CfnOutput(self, "WeightsBucketName", value=self.weights_bucket.bucket_name)
        # Imported by the output's name: other stacks need the bucket's name in their policies at synthesis.
        self.weights_bucket_name = cdk.Fn.get_stack_output(self.stack_name, output.node.id, region=env.region)
        self.batch = self._add_batch(batch, teams, platform, retain=retain) if batch else None
        self.signal_history = (
            self._add_signal_history(platform, signal_store, streaming, teams, retain=retain)
            if signal_store
            else None
        )

        #: Tables and buckets of the front door, if there is one.
        self.front_door = self._add_front_door(door_usage, teams, retain=retain) if door_usage else None

    def _add_front_door(self, usage: FrontDoorUsage, teams: Sequence[Team], *, retain: bool) -> DoorStore:
        """Add the tables of keys and of the ledger, and the buckets of records. Teams reach none of them."""
        from inference_constructs.front_door import (
            AuditBucket,
            DoorKeyTable,
            DoorLedgerTable,
            DoorStore,
            UsageBucket,
            isolate_keys,
        )

        keys = DoorKeyTable(self, "DoorKeys", encryption_key=self.encryption_key, retain=retain)
        audit = AuditBucket(
            self,
            "DoorAudit",
            encryption_key=self.encryption_key,
            log_bucket=self.log_bucket,
            retention_days=usage.retention_days,
            lock=usage.object_lock,
            retain=retain,
        )
        isolate_keys(keys, audit, principals=[arn for team in teams for arn in team.principals])
        return DoorStore.from_resources(
            self,
            keys=keys,
            ledger=DoorLedgerTable(self, "DoorLedger", encryption_key=self.encryption_key, retain=retain),
            usage=UsageBucket(
                self,
                "DoorUsage",
                encryption_key=self.encryption_key,
                log_bucket=self.log_bucket,
                retention_days=usage.retention_days,
                retain=retain,
            ),
            audit=audit,
            encryption_key=self.encryption_key,
        )

    def _add_batch(self, batch: Batch, teams: Sequence[Team], platform: str, *, retain: bool) -> BatchStore:
        """Add the tables and bucket of batch jobs. Each team may write manifests below its own prefixes."""
        from inference_constructs.batch import BatchStore, isolate_teams
        from inference_constructs.storage import BatchJobTable, BatchProgressTable

        bucket = DataBucket(
            self,
            "Batch",
            encryption_key=self.encryption_key,
            log_bucket=self.log_bucket,
            retain=retain,
            sends_events=True,
            expire_days={
                JOBS_PREFIX: batch.keep_days,
                FILES_PREFIX: MAX_FILE_DAYS + 1,
                UPLOADS_PREFIX: UPLOAD_DAYS,
                **{f"{queue.name}/": batch.keep_days for queue in batch.queues},
            },
            noncurrent_days=1,
        )
        for team in teams:
            bucket.grant_upload(
                [iam.ArnPrincipal(arn) for arn in team.principals],
                key_patterns=[f"{queue.name}/{team.name}/*" for queue in batch.queues],
            )
        role_path = batch_role_path(platform)
        isolate_teams(
            bucket,
            teams={team.name: team.principals for team in teams},
            queues=[queue.name for queue in batch.queues],
            role_path=role_path,
        )
        return BatchStore.from_resources(
            self,
            jobs=BatchJobTable(self, "Jobs", encryption_key=self.encryption_key, retain=retain),
            progress=BatchProgressTable(self, "Progress", encryption_key=self.encryption_key),
            bucket=bucket,
            encryption_key=self.encryption_key,
            role_path=role_path,
        )

    def _add_signal_history(
        self,
        platform: str,
        signal_store: SignalStore,
        streaming: Sequence[StreamingJob],
        teams: Sequence[Team],
        *,
        retain: bool,
    ) -> str:
        """Add the history of signals, and return the name of its bucket."""
        from inference_constructs.signals import SignalHistory

        history = SignalHistory(
            self,
            "SignalHistory",
            platform=platform,
            signals=[signal.name for signal in signal_store.signals],
            keep_days=signal_store.history_days,
            encryption_key=self.encryption_key,
            log_bucket=self.log_bucket,
            retain=retain,
        )
        if streaming:
            self._add_streaming_history(history.bucket, platform, signal_store, streaming, teams)
        cdk.CfnOutput(self, "SignalHistoryDatabase", value=history.database)
        cdk.CfnOutput(self, "SignalHistoryWorkgroup", value=history.workgroup)
        output = cdk.CfnOutput(self, "SignalHistoryBucketName", value=history.bucket.bucket_name)
        return cdk.Fn.get_stack_output(self.stack_name, output.node.id, region=self.region)

    @staticmethod
    def _add_streaming_history(
        bucket: DataBucket,
        platform: str,
        signal_store: SignalStore,
        streaming: Sequence[StreamingJob],
        teams: Sequence[Team],
    ) -> None:
        """Keep what streaming jobs write as long as other signals, for them and their team alone."""
        from inference_constructs.streaming import OwnedHistory, isolate_histories

        bucket.add_lifecycle_rule(
            prefix=STREAMING_HISTORY_PREFIX, expiration=cdk.Duration.days(signal_store.history_days)
        )
        principals = {team.name: team.principals for team in teams}
        isolate_histories(
            bucket,
            platform=platform,
            histories=[OwnedHistory(job.name, principals[job.team]) for job in streaming],
        )
