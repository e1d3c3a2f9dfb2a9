"""Names of the front door in AWS that its stacks, its programs and its commands share.

`door_key_table` has those of the table of API keys.
"""

from __future__ import annotations

from typing import Final

#: Partition key and sort key of the table of the ledger's checkpoints: a slot of the store, which holds all
#: counters of a team, or those of a model's budgets; and a counter in it.
SLOT_ATTRIBUTE: Final = "slot"
ACCOUNT_ATTRIBUTE: Final = "account"
#: Time at which DynamoDB deletes a checkpoint, in seconds since 1970.
CHECKPOINT_EXPIRY_ATTRIBUTE: Final = "removed"
#: A checkpoint has it until a replica has written it: it is what batch had spent before there was a door.
CARRIED_ATTRIBUTE: Final = "carried"

#: Port on which Envoy takes requests, with TLS. It has the health check too (`door_headers.READY_PATH`).
DOOR_PORT: Final = 8443
#: Port at which Prometheus, and nobody else, reads the metrics of a replica.
METRICS_PORT: Final = 8444
#: Job of Prometheus that reads replicas, and the label ``role`` of what it reads: they belong to no model.
DOOR_JOB: Final = "door"
DOOR_ROLE: Final = "door"

#: Key of the object that the policy process watches, in the bucket of the front door's configuration
#: (`door_object`).
CONFIGURATION_KEY: Final = "configuration.json"

#: Prefix of the usage records, before ``date=YYYY-MM-DD/``: the day, in UTC, on which Firehose has received
#: the first record of the object. Records of a day may therefore be below the next day too.
USAGE_PREFIX: Final = "usage/"
#: Prefix of records that Firehose could not deliver.
USAGE_ERRORS_PREFIX: Final = "usage-errors/"
#: Prefix of results of queries with Athena, which are kept for days.
QUERY_RESULTS_PREFIX: Final = "query-results/"
#: Name of the column and partition of the day.
USAGE_DAY: Final = "date"

#: Outputs of the stack ``<platform>-FrontDoor`` beside those of `door_key_table`.
LEDGER_TABLE_OUTPUT: Final = "DoorLedgerTable"
USAGE_BUCKET_OUTPUT: Final = "DoorUsageBucket"
USAGE_STREAM_OUTPUT: Final = "DoorUsageStream"
CACHE_OUTPUT: Final = "DoorLedgerCache"
ADDRESS_OUTPUT: Final = "DoorAddress"


def batch_parameter(platform: str) -> str:
    """Return the parameter of AWS Systems Manager in which replicas find the host name of the batch API.

    platform: `metadata.name`.
    """
    return f"/inference-blueprints/{platform}/front-door/batch-api"


def door_domain(platform: str) -> str:
    """Return the private zone on ECS in which the front door finds the entry points of deployments.

    platform: `metadata.name`.
    """
    return f"{platform}-door.internal"


def entry_point_name(platform: str, release: str) -> str:
    """Return the name on ECS under which the tasks of a deployment's entry point are found.

    platform: `metadata.name`.
    release: Name of the deployment in the platform.
    """
    return f"{release}.{door_domain(platform)}"


def entry_point_service(release: str) -> str:
    """Return the name of the headless Service on EKS of the entry points of a deployment.

    release: Helm release of the deployment.
    """
    return f"{release}-door"
