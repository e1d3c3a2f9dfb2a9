"""Names that two sides of batch use: tables, events, metrics, states, environment variables."""

from __future__ import annotations

from typing import Final, Literal, get_args

# States of a job, as in the OpenAI Batch API (https://platform.openai.com/docs/api-reference/batch).

JobState = Literal[
    "validating", "failed", "in_progress", "finalizing", "completed", "expired", "cancelling", "cancelled"
]

#: Allowed next states. A state without a next state is final.
TRANSITIONS: Final[dict[JobState, frozenset[JobState]]] = {
    "validating": frozenset({"in_progress", "failed", "cancelling", "expired"}),
    "in_progress": frozenset({"finalizing", "failed", "cancelling", "expired"}),
    "finalizing": frozenset({"completed", "failed", "expired"}),
    "cancelling": frozenset({"cancelled"}),
    "completed": frozenset(),
    # A redrive runs the unfinished requests of a job that failed or expired after it was admitted.
    "failed": frozenset({"in_progress"}),
    "expired": frozenset({"in_progress"}),
    "cancelled": frozenset(),
}

#: Final states, in the order in which dashboards show them.
ENDS: Final[tuple[JobState, ...]] = ("completed", "failed", "expired", "cancelled")
FINAL: Final = frozenset(ENDS)

STATES: Final[tuple[JobState, ...]] = get_args(JobState)
#: States of a job that has not ended.
OPEN: Final[tuple[JobState, ...]] = tuple(state for state in STATES if state not in FINAL)


def can_follow(before: JobState, after: JobState) -> bool:
    """Return whether a job may go directly from one state to another.

    before, after: The two states.
    """
    return after in TRANSITIONS[before]


# --- Functions and workers. ---

#: Bucket of files and jobs (`inference_contracts.batch_keys`).
BUCKET: Final = "BATCH_BUCKET"
#: Table of the progress of jobs.
PROGRESS_TABLE: Final = "BATCH_PROGRESS_TABLE"
#: Name of the platform, a dimension of the metrics.
PLATFORM: Final = "BATCH_PLATFORM"

# --- Items of the table of records that programs other than batch's functions read. ---

#: What the partition keys of what a team has spent in a month, and of an attempt at a job, begin with.
SPENDING_PREFIX: Final = "spending#"
ADMISSION_PREFIX: Final = "admission#"

# --- Functions. ---

#: Table of jobs, files and uploads.
TABLE: Final = "BATCH_TABLE"
STATE_MACHINE_ARN: Final = "BATCH_STATE_MACHINE_ARN"
#: File with queues and teams. Its path is relative to the folder with the functions' code.
CONFIGURATION: Final = "BATCH_CONFIGURATION"
#: Table of the checkpoints of the front door's ledger, and the time zone of its months; only with a door.
DOOR_LEDGER_TABLE: Final = "BATCH_DOOR_LEDGER_TABLE"
DOOR_TIME_ZONE: Final = "BATCH_DOOR_TIME_ZONE"
#: Table of the API keys of the front door, which the authorizer takes; only if callers may have them.
DOOR_KEYS_TABLE: Final = "BATCH_DOOR_KEYS_TABLE"
#: Name of the function that closes jobs.
CLOSE_FUNCTION: Final = "BATCH_CLOSE_FUNCTION"
#: JSON object: the URL of the shard queue of each model.
QUEUE_URLS: Final = "BATCH_QUEUE_URLS"
#: Models whose places the capacity shift limits, with commas.
CEILINGS: Final = "BATCH_CEILINGS"
#: Time for which API Gateway caches a decision of the authorizer.
AUTHORIZER_SECONDS: Final = "BATCH_AUTHORIZER_SECONDS"
#: AWS account of the platform. Tokens are signed for it.
ACCOUNT: Final = "BATCH_ACCOUNT"
#: Bucket of the history of signals.
SIGNALS_HISTORY_BUCKET: Final = "SIGNALS_HISTORY_BUCKET"

# --- Workers; `batch.worker.settings` documents units and defaults. ---

#: URL of the shard queue of the worker's model.
QUEUE_URL: Final = "BATCH_QUEUE_URL"
ENDPOINT: Final = "BATCH_ENDPOINT"
#: Addresses of deployments that may have no workers, with commas: each takes shards while it has some.
LENT_ENDPOINTS: Final = "BATCH_LENT_ENDPOINTS"
LENT_DEPLOYMENTS: Final = "BATCH_LENT_DEPLOYMENTS"
MODEL: Final = "BATCH_MODEL"
IN_FLIGHT_LEAST: Final = "BATCH_IN_FLIGHT_LEAST"
IN_FLIGHT_START: Final = "BATCH_IN_FLIGHT_START"
IN_FLIGHT_MOST: Final = "BATCH_IN_FLIGHT_MOST"
LATENCY_PERCENT: Final = "BATCH_LATENCY_PERCENT"
#: JSON object of headers that each request to the endpoint has.
REQUEST_HEADERS: Final = "BATCH_REQUEST_HEADERS"
SHARDS_AT_ONCE: Final = "BATCH_SHARDS_AT_ONCE"
MEMORY_MIB: Final = "BATCH_MEMORY_MIB"
LINE_MOST_KIB: Final = "BATCH_LINE_MOST_KIB"
IMAGE_MOST_KIB: Final = "BATCH_IMAGE_MOST_KIB"
REQUEST_SECONDS: Final = "BATCH_REQUEST_SECONDS"
CONNECT_SECONDS: Final = "BATCH_CONNECT_SECONDS"
ATTEMPTS: Final = "BATCH_ATTEMPTS"
RETRY_PERCENT: Final = "BATCH_RETRY_PERCENT"
FLUSH_MILLISECONDS: Final = "BATCH_FLUSH_MILLISECONDS"
FLUSH_KIB: Final = "BATCH_FLUSH_KIB"
HEARTBEAT_SECONDS: Final = "BATCH_HEARTBEAT_SECONDS"
VISIBILITY_SECONDS: Final = "BATCH_VISIBILITY_SECONDS"
POLL_SECONDS: Final = "BATCH_POLL_SECONDS"
HOLD_SECONDS: Final = "BATCH_HOLD_SECONDS"
#: Table of jobs, in which the worker reads the ceiling of its model; only where the capacity shift sets one.
CEILINGS_TABLE: Final = "BATCH_CEILINGS_TABLE"
DRAIN_SECONDS: Final = "BATCH_DRAIN_SECONDS"
METRICS_SECONDS: Final = "BATCH_METRICS_SECONDS"
STATUS_FILE: Final = "BATCH_STATUS_FILE"
SPOT_WARNINGS: Final = "BATCH_SPOT_WARNINGS"


#: Output of the stack `<platform>-Batch`: the base URL of the API, which ends in `/v1`.
API_OUTPUT: Final = "BatchApiAddress"


def batch_role_path(platform: str) -> str:
    """Return the IAM path of the roles that run a platform's jobs. The bucket's policy tells them by it.

    platform: `metadata.name`.
    """
    return f"/inference-blueprints/{platform}/batch/"


# --- The table of jobs, files and uploads. ---

ID_ATTRIBUTE: Final = "id"
#: Index of a team's records, in the order of their creation.
TEAM_INDEX: Final = "byTeam"
TEAM_INDEX_KEY: Final = "collection"
#: Index of jobs that have not ended, by state.
STATE_INDEX: Final = "byState"
STATE_INDEX_KEY: Final = "openState"
#: Sort key of both indexes.
ORDER_ATTRIBUTE: Final = "order"
#: Time at which DynamoDB deletes an item of either table, in seconds since 1970.
EXPIRY_ATTRIBUTE: Final = "expires"

# --- The table of the progress of jobs. ---

JOB_ATTRIBUTE: Final = "job"
SHARD_ATTRIBUTE: Final = "shard"

# --- Events on the account's default bus. ---

EVENT_SOURCE: Final = "inference-blueprints.batch"
#: A job waits for places.
JOB_ASKS_EVENT: Final = "Batch Job Asks"
#: A job has ended.
JOB_ENDED_EVENT: Final = "Batch Job State Change"

# --- The state machine. ---

#: Label of the map whose children are shards; it is part of the ARN of its map runs.
SHARD_MAP_LABEL: Final = "Shards"
#: Errors of a worker that occur again in every attempt at the same shard.
PERMANENT_ERRORS: Final = ("InvalidJobError", "MissingObjectError")
#: Error of a function: AWS could not answer. The call is repeated until the job's deadline.
BUSY_ERROR: Final = "AwsBusyError"
#: Error of a function: AWS denied a call of the platform's own role, perhaps only during a deployment. The
#: call is repeated for some minutes.
DENIED_ERROR: Final = "AwsDeniedError"

# --- Metrics in CloudWatch. ---

METRIC_NAMESPACE: Final = "InferenceBlueprints/Batch"
PLATFORM_DIMENSION: Final = "Platform"
QUEUE_DIMENSION: Final = "Queue"
MODEL_DIMENSION: Final = "Model"
TEAM_DIMENSION: Final = "Team"
STATE_DIMENSION: Final = "State"

# By queue, once a minute.
JOBS_WAITING: Final = "JobsWaiting"
JOBS_RUNNING: Final = "JobsRunning"
JOBS_ENDING: Final = "JobsEnding"
OLDEST_WAITING_SECONDS: Final = "OldestWaitingSeconds"
WAITED_PERCENT: Final = "WaitedPercent"
# By platform.
SCHEDULER_RUNS: Final = "SchedulerRuns"
JOBS_BROKEN: Final = "JobsBroken"
# By state, model or team, when a job ends.
JOBS_ENDED: Final = "JobsEnded"
COMPLETED_REQUESTS: Final = "CompletedRequests"
FAILED_REQUESTS: Final = "FailedRequests"
CACHED_TOKENS: Final = "CachedTokens"
COST_USD: Final = "CostUsd"
INPUT_TOKENS: Final = "InputTokens"
OUTPUT_TOKENS: Final = "OutputTokens"
# By model, once a minute from each worker.
REQUESTS: Final = "Requests"
ROWS: Final = "Rows"
SHARDS: Final = "Shards"
REFUSED: Final = "Refused"
UNAVAILABLE: Final = "Unavailable"
BROKEN: Final = "Broken"
IN_FLIGHT: Final = "InFlight"
IN_FLIGHT_LIMIT: Final = "InFlightLimit"
SHARDS_HELD: Final = "ShardsHeld"

#: All of them, by what has one of each: a queue, the platform, each combination of dimensions of a job's end
#: (team; model; both; both and queue), a model. `JOBS_ENDED` has one per state.
QUEUE_METRICS: Final = (JOBS_WAITING, JOBS_RUNNING, JOBS_ENDING, OLDEST_WAITING_SECONDS, WAITED_PERCENT)
PLATFORM_METRICS: Final = (SCHEDULER_RUNS, JOBS_BROKEN)
JOB_METRICS: Final = (
    *(COMPLETED_REQUESTS, FAILED_REQUESTS, INPUT_TOKENS, CACHED_TOKENS, OUTPUT_TOKENS, COST_USD),
)
WORKER_METRICS: Final = (
    *(REQUESTS, ROWS, SHARDS, REFUSED, UNAVAILABLE, BROKEN, IN_FLIGHT, IN_FLIGHT_LIMIT, SHARDS_HELD),
)

# --- Tokens of clients that cannot sign their requests. ---

TOKEN_PREFIX: Final = "inference-blueprints-v1."  # noqa: S105 - the public prefix of every token
#: Signed header with `token_audience`, so that a token is valid for one platform only.
TOKEN_AUDIENCE_HEADER: Final = "x-inference-blueprints-audience"  # noqa: S105 - the name of a header


def token_audience(account: str, platform: str) -> str:
    """Return the platform for which a token is signed. Its region is that of STS.

    account: AWS account of the platform, 12 digits. Platforms of other accounts may have the same name.
    platform: `metadata.name`.
    """
    return f"{account}/{platform}"


def sts_host(region: str) -> str:
    """Return the host of STS in a region, for which a token must be signed.

    Source: https://docs.aws.amazon.com/general/latest/gr/sts.html
    """
    return f"sts.{region}.amazonaws.com{'.cn' if region.startswith('cn-') else ''}"
