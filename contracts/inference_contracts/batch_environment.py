"""Environment variables of the batch functions and workers: deployment sets them."""

from __future__ import annotations

from typing import Final

# --- Functions and workers. ---

#: Bucket of files and jobs (`inference_contracts.batch_keys`).
BUCKET: Final = "BATCH_BUCKET"
#: Table of the progress of jobs.
PROGRESS_TABLE: Final = "BATCH_PROGRESS_TABLE"
#: Name of the platform, a dimension of the metrics.
PLATFORM: Final = "BATCH_PLATFORM"

# --- Functions. ---

#: Table of jobs, files and uploads.
TABLE: Final = "BATCH_TABLE"
STATE_MACHINE_ARN: Final = "BATCH_STATE_MACHINE_ARN"
#: File with queues and teams. Its path is relative to the folder with the functions' code.
CONFIGURATION: Final = "BATCH_CONFIGURATION"
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
