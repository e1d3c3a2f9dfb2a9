"""Names of streaming jobs in the cloud, which stacks, programs and commands share."""

from __future__ import annotations

from typing import Final

#: Prefixes in the bucket of the signals' history.
STREAMING_HISTORY_PREFIX: Final = "streaming-history/"
JOB_DOCUMENTS_PREFIX: Final = "streaming-configuration/"
JOB_PROGRAMS_PREFIX: Final = "streaming-programs/"

#: Output of the stack `<platform>-Streaming`: JSON of job -> `PROBE` and `REDRIVE` -> name of its function.
JOB_FUNCTIONS_OUTPUT: Final = "JobFunctions"
PROBE: Final = "probe"
REDRIVE: Final = "redrive"

#: Environment variable of these functions: S3 address of the job's configuration.
JOB_DOCUMENT: Final = "STREAMING_CONFIGURATION"

#: Metric group of the job, which CloudWatch shows as a dimension beside ``Application``
#: (https://docs.aws.amazon.com/managed-flink/latest/java/monitoring-metrics-custom.html).
JOB_METRIC_DIMENSION: Final = ("Service", "enrichment")
EVENTS_METRIC: Final = "events"
SESSIONS_METRIC: Final = "sessionsOpen"
IN_FLIGHT_METRIC: Final = "inFlight"
CALL_METRICS: Final = ("callMillisP50", "callMillisP99")
EVENT_TO_SIGNAL_METRICS: Final = ("eventToSignalMillisP50", "eventToSignalMillisP99")
ANSWER_METRICS: Final = ("answered", "superseded")
DEAD_LETTERS_METRIC: Final = "deadLetters"

#: Runbooks of the alarms, as paths below the repository.
STREAM_BEHIND_RUNBOOK: Final = "docs/runbooks/stream-behind.md"
STREAM_STOPPED_RUNBOOK: Final = "docs/runbooks/stream-stopped.md"
STREAM_CHECKPOINTS_RUNBOOK: Final = "docs/runbooks/stream-checkpoints-failing.md"
STREAM_DEAD_LETTERS_RUNBOOK: Final = "docs/runbooks/stream-dead-letters.md"
STREAMING_RUNBOOKS: Final = (
    STREAM_BEHIND_RUNBOOK,
    STREAM_STOPPED_RUNBOOK,
    STREAM_CHECKPOINTS_RUNBOOK,
    STREAM_DEAD_LETTERS_RUNBOOK,
)


def flink_application(platform: str, job: str) -> str:
    """Return the name of a job's application.

    platform: `metadata.name`.
    """
    return f"{platform}-{job}"


def streaming_role_path(platform: str, job: str) -> str:
    """Return the IAM path of the roles of a job, which alone write its history.

    platform: `metadata.name`.
    """
    return f"/inference-blueprints/{platform}/streaming/{job}/"


def kafka_cluster_name(platform: str) -> str:
    """Return the name of the platform's Kafka cluster.

    platform: `metadata.name`.
    """
    return f"{platform}-events"


def streaming_history(bucket: str, job: str) -> str:
    """Return the S3 address below which a job's history is written.

    The scheme is that of Flink's Hadoop plugin, as in AWS's example S3Sink. Presto's takes ``s3://`` too,
    and cannot write the files of a sink
    (https://nightlies.apache.org/flink/flink-docs-release-2.3/docs/deployment/filesystems/s3/).

    bucket: Bucket of the signals' history.
    """
    return f"s3a://{bucket}/{STREAMING_HISTORY_PREFIX}{job}"
