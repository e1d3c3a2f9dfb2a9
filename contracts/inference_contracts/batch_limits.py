"""Sizes, times and counts of batch jobs. The functions and workers enforce them, and plans use them."""

from __future__ import annotations

from typing import Final

from inference_contracts.units import MIB

# --- Jobs. ---

#: Shortest deadline of a job, in hours. The longest is that of its queue.
MIN_DEADLINE_HOURS: Final = 0.01

# --- Preparation: the input becomes segments, and segments become shards. ---

#: Bytes of one segment: a function checks it well within its 15 minutes and holds it in memory.
SEGMENT_BYTES: Final = 64 * MIB
#: Segments of one job that are checked at the same time.
MAX_CONCURRENT_SEGMENTS: Final = 50
#: The lines of a segment are buffered up to this many bytes and then cut into shards.
LINE_BUFFER_BYTES: Final = 64 * MIB
#: Memory that a buffered line takes in addition to its text.
LINE_OVERHEAD_BYTES: Final = 1024
#: Input and output tokens of a shard: minutes of work, so that a lost worker costs little and the last shards
#: of a job end at about the same time.
MAX_SHARD_TOKENS: Final = 8_000_000
#: Maximum number of lines per shard, regardless of their length.
MAX_SHARD_LINES: Final = 50_000
#: Prompts of different length classes go to different shards: short prompts would wait for the prefill
#: of long ones. These are the upper ends of the first two classes, in tokens.
LENGTH_CLASS_ENDS: Final = (2_048, 16_384)
LENGTH_CLASSES: Final = len(LENGTH_CLASS_ENDS) + 1
#: Bytes per token, for estimates. Common vocabularies have 4 to 5 for English, 3 to 5 for Chinese and 3 to 4
#: for code.
BYTES_PER_TOKEN: Final = 4
#: Objects that a checked segment leaves in addition to its shards: report, custom_ids and invalid lines.
OBJECTS_PER_SEGMENT: Final = 3

# --- Generated images. ---

#: Largest number of images of a request (`ImageGenerationRequest` of vllm-omni 0.30.0, and OpenAI's API).
IMAGES_PER_REQUEST: Final = 10
#: Pixels of all images of a request. An uncompressed pixel is 3 bytes, 4 in base64, so that the answer stays
#: below `ANSWER_BYTES`.
PIXELS_PER_REQUEST: Final = 16_000_000
#: Width and height that are counted for a request without `size`. The model's own may differ.
DEFAULT_IMAGE_SIDE: Final = 1024
#: Width and height of the pixels that count as one output token: common diffusion transformers, such as FLUX
#: and Qwen-Image, compute one latent token for them.
PIXEL_SIDE_PER_TOKEN: Final = 16

# --- Functions. ---

#: Calls of a function that may run at the same time. Lambda keeps room for them, so a burst of checks does
#: not stop the API, and other functions of the account do not stop the scheduler. A reserved number is a
#: maximum too, and 100 calls of the account must stay unreserved
#: (https://docs.aws.amazon.com/lambda/latest/dg/configuration-concurrency.html).
RESERVED_CALLS: Final = {"check": 400, "api": 100, "authorizer": 50, "schedule": 2}
#: Calls that Lambda does not let an account reserve (the same page).
UNRESERVED_CALLS: Final = 100

#: Time for which one call reads and writes small results. After that, it only has S3 copy what is joined,
#: and a job with more results gets further calls.
JOINING_SECONDS: Final = 480

# --- Workers. ---

#: Shards held by a worker. Some shards start or end while the requests of another are sent.
SHARDS_PER_WORKER: Final = 4
#: Memory of the lines that a worker has read and not answered. Further lines wait.
WORKER_LINE_BYTES: Final = 256 * MIB
#: Copies of a line in that memory: its values, the request's body, and the body as it is sent.
LINE_COPIES: Final = 3
#: Largest answer that a worker reads, so that an endless answer cannot exhaust memory.
ANSWER_BYTES: Final = 64 * MIB
#: Maximum number of requests in flight per worker.
REQUESTS_PER_WORKER: Final = 512
#: How much longer answers of batch may take than with little load, in percent, if the router makes batch wait
#: for interactive requests. It is the waiting time of batch itself, and not what interactive requests lose.
LATENCY_PERCENT_BEHIND: Final = 100
#: Longest time from a result to its commit.
FLUSH_SECONDS: Final = 1
#: Results that are committed before that time.
FLUSH_BYTES: Final = 4 * MIB
#: Time between two heartbeats of a worker for each of its shards.
WORKER_HEARTBEAT_SECONDS: Final = 30
#: Time without a heartbeat after which SQS gives the shard's message to another worker.
VISIBILITY_SECONDS: Final = 120
#: Objects that a finished shard leaves: output, errors, expired lines and summary.
OBJECTS_PER_SHARD: Final = 4

# --- The state machine. ---

#: Time without a heartbeat after which the state machine gives a shard to another worker.
TASK_HEARTBEAT_SECONDS: Final = 120
#: Longest wait before a shard without heartbeats is given to another worker again. Each attempt leaves four
#: of the 25,000 events that an execution may have: with this wait they last for the longest deadline.
MAX_TASK_RETRY_SECONDS: Final = 120
#: Bytes that the output of a child execution takes in the output of its map: `{}` and a comma.
CHILD_OUTPUT_BYTES: Final = 3
#: States of an execution that succeeds, including its start.
STATES_PER_JOB: Final = 17
#: States of a child execution, including its start.
STATES_PER_CHILD: Final = 2
#: History events of a child execution that succeeds.
EVENTS_PER_CHILD: Final = 8
#: History events of each missed heartbeat: scheduled, started, submitted, timed out.
EVENTS_PER_TASK_TIMEOUT: Final = 4

# --- The scheduler, the API and its clients. ---

#: Time between two runs of the scheduler.
SCHEDULE_SECONDS: Final = 60
#: Time in which a function closes a job, before the scheduler calls it again: longer than a function may run
#: (https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html).
CLOSE_SECONDS: Final = 960
#: Running jobs whose number of places changes in one run, at most. Step Functions lets an account list and
#: update one map run per second (https://docs.aws.amazon.com/step-functions/latest/dg/service-quotas.html).
MAX_RESIZES_PER_RUN: Final = 50
#: Bytes of a file or part in one request. Lambda accepts an event of 6 MB, in which bytes are base64
#: (https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html).
MAX_REQUEST_BYTES: Final = 4 * MIB
#: Bytes of a file that is uploaded in parts. The API joins them well within the 29 s that API Gateway waits.
MAX_UPLOAD_BYTES: Final = 512 * MIB
#: Longest lifetime of an input, and of the files of a job: OpenAI's limit of `expires_after.seconds` and
#: `output_expires_after.seconds` is 2,592,000 (https://platform.openai.com/docs/api-reference/batch/create).
MAX_FILE_DAYS: Final = 30
#: Shortest lifetime in seconds, by the same page.
MIN_FILE_SECONDS: Final = 3600
#: Days after which the parts of an upload are deleted. An upload accepts parts for an hour.
UPLOAD_DAYS: Final = 2
#: Jobs on one page of the list.
MAX_LISTED_JOBS: Final = 100
#: Validity of the signature of a token: STS accepts a presigned request for no longer
#: (https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv.html).
TOKEN_SECONDS: Final = 900
#: Time for which API Gateway caches the result for a token. The authorizer refuses tokens that expire sooner.
AUTHORIZER_SECONDS: Final = 300
#: Time for which a new token is accepted.
ACCEPTED_TOKEN_SECONDS: Final = TOKEN_SECONDS - AUTHORIZER_SECONDS
