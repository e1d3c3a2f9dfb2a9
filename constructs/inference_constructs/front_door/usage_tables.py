"""Usage records for queries with Athena: a table over their objects, and a view of what was spent per day."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import fields
from types import MappingProxyType
from typing import Final

import aws_cdk as cdk
from aws_cdk import aws_glue as glue
from aws_cdk import aws_kms as kms
from constructs import Construct

from inference_constructs.storage.query_workgroup import add_workgroup
from inference_contracts.door_names import QUERY_RESULTS_PREFIX, USAGE_DAY, USAGE_PREFIX
from inference_contracts.usage_record import UsageRecord

#: Before the first release with usage records.
_FIRST_DAY: Final = "2026-11-01"
_JSON: Final = "org.openx.data.jsonserde.JsonSerDe"
TABLE: Final = "usage"
VIEW: Final = "spent_by_day"
#: Type of a column by the type of the field, as Hive and as Presto name it.
_TYPES: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {"int": ("bigint", "bigint"), "bool": ("boolean", "boolean"), "str": ("string", "varchar")}
)
#: Columns of the view: whose requests, of which model, and what they were and cost.
_SPENT: Final[Mapping[str, str]] = MappingProxyType(
    {
        "day": "date",
        "team": "varchar",
        "project": "varchar",
        "key": "varchar",
        "caller": "varchar",
        "user": "varchar",
        "model": "varchar",
        "requests": "bigint",
        "input_tokens": "bigint",
        "output_tokens": "bigint",
        "usd": "double",
    }
)


_SPENT_QUERY: Final = """
SELECT
  CAST(
    from_unixtime(IF("day" > 0, "day", to_unixtime(from_iso8601_timestamp("time")))) AT TIME ZONE 'TIME_ZONE'
    AS date
  ) AS "day",
  "team", "project", "key", "caller", "user", "model",
  count(*) AS "requests",
  sum("input_tokens") AS "input_tokens",
  sum("output_tokens") AS "output_tokens",
  sum("cost_nano") / 1e9 AS "usd"
FROM (
  SELECT *, row_number() OVER (PARTITION BY "id", "reservation" ORDER BY "time") AS "copy"
  FROM "usage"
)
WHERE "copy" = 1
GROUP BY 1, 2, 3, 4, 5, 6, 7
""".strip()


def spent_query(time_zone: str) -> str:
    """Return the query of the view, for Athena.

    A record counts once, although Firehose may deliver it twice, and on the day of the ledger that it was
    charged to.

    Parameters
    ----------
    time_zone
        IANA time zone of the ledger's days.
    """
    return _SPENT_QUERY.replace("TIME_ZONE", time_zone)


class UsageTables(Construct):
    """A Glue database with the table ``usage`` and the view ``spent_by_day``, and an Athena workgroup.

    The partitions are projected, so that no crawler is needed
    (https://docs.aws.amazon.com/athena/latest/ug/partition-projection.html). A view is a table of the
    catalogue with the query in base64 (https://docs.aws.amazon.com/athena/latest/ug/views.html;
    trinodb/trino, ``ViewReaderUtil``).

    Parameters
    ----------
    platform
        `metadata.name`.
    bucket_name
        Bucket of the records, and of the results of queries.
    time_zone
        IANA time zone of the ledger's days.
    encryption_key
        KMS key of the results.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        platform: str,
        bucket_name: str,
        time_zone: str,
        encryption_key: kms.IKey,
    ) -> None:
        super().__init__(scope, construct_id)
        catalog = cdk.Stack.of(self).account
        # Without hyphens, because queries would have to quote them.
        self.database = f"{platform.replace('-', '_')}_front_door"
        self.workgroup = f"{platform}-front-door"
        database = glue.CfnDatabase(
            self,
            "Database",
            catalog_id=catalog,
            database_input=glue.CfnDatabase.DatabaseInputProperty(
                name=self.database, description="Requests through the front door"
            ),
        )
        for name, table in (("Table", _table(bucket_name)), ("Spent", self._view(time_zone))):
            glue.CfnTable(
                self, name, catalog_id=catalog, database_name=self.database, table_input=table
            ).add_resource_dependency(database)
        add_workgroup(
            self,
            name=self.workgroup,
            description="Queries of usage records",
            results=f"s3://{bucket_name}/{QUERY_RESULTS_PREFIX}",
            encryption_key=encryption_key,
        )

    def _view(self, time_zone: str) -> glue.CfnTable.TableInputProperty:
        """Return the view, as Athena writes it into the catalogue."""
        definition = {
            "originalSql": spent_query(time_zone),
            "catalog": "awsdatacatalog",
            "schema": self.database,
            "columns": [{"name": name, "type": kind} for name, kind in _SPENT.items()],
        }
        text = base64.b64encode(json.dumps(definition).encode()).decode()
        hive = {presto: hive for hive, presto in _TYPES.values()}
        return glue.CfnTable.TableInputProperty(
            name=VIEW,
            parameters={"presto_view": "true", "comment": "Presto View"},
            storage_descriptor=glue.CfnTable.StorageDescriptorProperty(
                columns=[_column(name, hive.get(kind, kind)) for name, kind in _SPENT.items()]
            ),
            table_type="VIRTUAL_VIEW",
            view_expanded_text="/* Presto View */",
            view_original_text=f"/* Presto View: {text} */",
        )


def _table(bucket_name: str) -> glue.CfnTable.TableInputProperty:
    """Return the table of the records, with a partition per day of arrival."""
    place = f"s3://{bucket_name}/{USAGE_PREFIX}"
    return glue.CfnTable.TableInputProperty(
        name=TABLE,
        parameters={
            "projection.enabled": "true",
            f"projection.{USAGE_DAY}.type": "date",
            f"projection.{USAGE_DAY}.format": "yyyy-MM-dd",
            f"projection.{USAGE_DAY}.range": f"{_FIRST_DAY},NOW",
            "storage.location.template": f"{place}{USAGE_DAY}=${{{USAGE_DAY}}}/",
        },
        partition_keys=[_column(USAGE_DAY, "string")],
        storage_descriptor=glue.CfnTable.StorageDescriptorProperty(
            columns=[_column(name, kind) for name, kind in record_columns().items()],
            input_format="org.apache.hadoop.mapred.TextInputFormat",
            location=place,
            output_format="org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat",
            serde_info=glue.CfnTable.SerdeInfoProperty(serialization_library=_JSON),
        ),
        table_type="EXTERNAL_TABLE",
    )


def record_columns() -> dict[str, str]:
    """Return the columns of the table: the fields of a usage record with their types in Hive."""
    named = {field.name: str(field.type).partition(" ")[0] for field in fields(UsageRecord)}
    return {name: _TYPES.get(kind, _TYPES["str"])[0] for name, kind in named.items()}


def _column(name: str, kind: str) -> glue.CfnTable.ColumnProperty:
    return glue.CfnTable.ColumnProperty(name=name, type=kind)
