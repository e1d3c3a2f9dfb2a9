"""The history of the signal store: all written values in S3, for queries with Athena."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import aws_cdk as cdk
from aws_cdk import aws_glue as glue
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct

from inference_constructs.storage.buckets import DataBucket
from inference_constructs.storage.query_workgroup import add_workgroup
from inference_contracts.signal_rows import COLUMNS, HISTORY_PREFIX, PARTITIONS, partition_prefix

_FIRST_DAY: Final = "2026-01-01"
_RESULTS: Final = "query-results/"
_RESULT_DAYS: Final = 7
_JSON: Final = "org.openx.data.jsonserde.JsonSerDe"


class SignalHistory(Construct):
    """A bucket, a Glue table whose partitions need no crawler, and an Athena workgroup.

    Parameters
    ----------
    platform
        `metadata.name`.
    signals
        Names of the signals.
    keep_days
        Retention of rows, in days.
    encryption_key
        KMS key of rows and query results.
    log_bucket
        Bucket for access logs.
    retain
        Whether the bucket outlives its stack.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        platform: str,
        signals: Sequence[str],
        keep_days: int,
        encryption_key: kms.IKey,
        log_bucket: s3.IBucket,
        retain: bool = True,
    ) -> None:
        super().__init__(scope, construct_id)
        self.bucket = DataBucket(
            self, "Signals", encryption_key=encryption_key, log_bucket=log_bucket, retain=retain
        )
        self.bucket.add_lifecycle_rule(prefix=HISTORY_PREFIX, expiration=cdk.Duration.days(keep_days))
        self.bucket.add_lifecycle_rule(prefix=_RESULTS, expiration=cdk.Duration.days(_RESULT_DAYS))
        catalog = cdk.Stack.of(self).account
        # Without hyphens, because queries would have to quote them.
        self.database = f"{platform.replace('-', '_')}_signals"
        database = glue.CfnDatabase(
            self,
            "Database",
            catalog_id=catalog,
            database_input=glue.CfnDatabase.DatabaseInputProperty(
                name=self.database, description="Signals that batch jobs wrote"
            ),
        )
        table = glue.CfnTable(
            self,
            "Table",
            catalog_id=catalog,
            database_name=self.database,
            table_input=self._table(signals),
        )
        table.add_resource_dependency(database)
        self.workgroup = f"{platform}-signals"
        add_workgroup(
            self,
            name=self.workgroup,
            description="Queries of the history of signals",
            results=f"s3://{self.bucket.bucket_name}/{_RESULTS}",
            encryption_key=encryption_key,
        )

    def _table(self, signals: Sequence[str]) -> glue.CfnTable.TableInputProperty:
        """Return a table with partition projection."""
        # https://docs.aws.amazon.com/athena/latest/ug/partition-projection.html
        bucket = f"s3://{self.bucket.bucket_name}/"
        return glue.CfnTable.TableInputProperty(
            name="signals",
            parameters={
                "projection.enabled": "true",
                "projection.name.type": "enum",
                "projection.name.values": ",".join(signals),
                "projection.date.type": "date",
                "projection.date.format": "yyyy-MM-dd",
                "projection.date.range": f"{_FIRST_DAY},NOW",
                "storage.location.template": bucket + partition_prefix("${name}", "${date}"),
            },
            partition_keys=[_column(name, "string") for name in PARTITIONS],
            storage_descriptor=glue.CfnTable.StorageDescriptorProperty(
                columns=[_column(name, kind) for name, kind in COLUMNS.items()],
                input_format="org.apache.hadoop.mapred.TextInputFormat",
                location=bucket + HISTORY_PREFIX,
                output_format="org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat",
                serde_info=glue.CfnTable.SerdeInfoProperty(serialization_library=_JSON),
            ),
            table_type="EXTERNAL_TABLE",
        )


def _column(name: str, kind: str) -> glue.CfnTable.ColumnProperty:
    """Return a column."""
    return glue.CfnTable.ColumnProperty(name=name, type=kind)
