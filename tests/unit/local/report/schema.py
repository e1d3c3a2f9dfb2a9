"""JSON Schema of report.json."""

from typing import Any

_NUMBER_OR_NULL = {"type": ["number", "null"]}


def _object(**properties: dict[str, Any] | list[Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


_STRING, _NUMBER, _COUNT = {"type": "string"}, {"type": "number"}, {"type": "integer", "minimum": 0}
_COUNTS = {"type": "object", "additionalProperties": {"type": "integer", "minimum": 1}}
_PERCENTILES = _object(p50=_NUMBER_OR_NULL, p90=_NUMBER_OR_NULL, p95=_NUMBER_OR_NULL, p99=_NUMBER_OR_NULL)
_PER_TOKENS = {"anyOf": [{"type": "null"}, _object(inputAndOutput=_NUMBER, output=_NUMBER)]}
_LENGTH = _object(stated=_COUNT, sent=_NUMBER, counted=_NUMBER_OR_NULL)
_MEASUREMENT: dict[str, dict[str, Any]] = {
    "requests": _COUNT,
    "failures": _COUNT,
    "failureReasons": {"type": "object", "additionalProperties": {"type": "integer", "minimum": 1}},
    "ttftMs": _PERCENTILES,
    "timePerOutputTokenMs": _PERCENTILES,
    "endToEndMs": _PERCENTILES,
    "prefixCacheHitRatio": {"type": ["number", "null"], "minimum": 0, "maximum": 1},
    "throughputPerGpuTokensPerSecond": _PER_TOKENS,
    "pricePerMillionTokensUsd": _PER_TOKENS,
    "costNote": _STRING,
    "images": _COUNT,
}
_MODEL = _object(
    name=_STRING,
    endpoint=_STRING,
    curl=_STRING,
    **_MEASUREMENT,
    objectives={
        "type": "array",
        "items": _object(
            name=_STRING, limitMs=_NUMBER, measuredMs=_NUMBER_OR_NULL, met={"type": ["boolean", "null"]}
        ),
    },
    replayed=_object(
        trace=_STRING,
        source=_STRING,
        licence=_STRING,
        cut=_STRING,
        recordedSeconds=_NUMBER,
        elapsedSeconds=_NUMBER,
        peakRequestsPerSecond=_NUMBER,
        peakWindowSeconds=_NUMBER,
        inputTokens=_LENGTH,
        outputTokens=_LENGTH,
        statedSharedPrefixRatio=_NUMBER,
        templateTokens=_COUNT,
        scaling=_object(
            time=_NUMBER,
            input=_NUMBER,
            output=_NUMBER,
            blockTokens=_NUMBER,
            commonPrefixTokens=_COUNT,
            clippedInputs=_COUNT,
            clippedOutputs=_COUNT,
        ),
        seed=_COUNT,
        clientCpuShare=_NUMBER,
        latenessP99Ms=_NUMBER,
        images={"type": ["string", "null"]},
    ),
    failureDetails={"type": "object", "additionalProperties": _STRING},
    warnings={"type": "array", "items": _STRING},
)
_STATE = {"enum": ["real", "stand-in", "emulated", "simulated", "stubbed"]}
_PART = _object(name=_STRING, state=_STATE, detail=_STRING)
_REPLACEMENT = _object(workers=_STRING, setting=_STRING, planned=_STRING, here=_STRING, reason=_STRING)
_WORKER_LOSS = _object(
    deployment=_STRING,
    role={"enum": ["worker", "prefill", "decode"]},
    workers=_COUNT,
    killed=_COUNT,
    streams=_COUNT,
    moved=_COUNT,
    lost=_COUNT,
)
_BATCH_OUTCOME = _object(
    queue=_STRING,
    model=_STRING,
    team=_STRING,
    state={"enum": ["completed", "failed", "expired", "cancelled"]},
    requests=_COUNT,
    completed=_COUNT,
    failed=_COUNT,
    lost=_COUNT,
    duplicated=_COUNT,
    costUsd=_NUMBER,
    seconds=_NUMBER,
    workersKilled=_COUNT,
    images={"type": ["integer", "null"], "minimum": 0},
    signals={
        "anyOf": [
            {"type": "null"},
            _object(name=_STRING, written=_COUNT, missing=_COUNT, wrong=_COUNT),
        ]
    },
)
_DECISION = _object(
    seconds=_NUMBER,
    role=_STRING,
    workers=_COUNT,
    ready=_COUNT,
    readings={"type": "object", "additionalProperties": _NUMBER_OR_NULL},
    desired=_COUNT,
    reason=_STRING,
)
_SCALING = _object(
    workersMin=_COUNT,
    workersMax=_COUNT,
    decisions={"type": "array", "items": _DECISION},
    cutStreams=_COUNT,
    lost=_COUNT,
    requests=_COUNT,
    clients={"type": ["integer", "null"], "minimum": 1},
    gpuHours=_NUMBER,
    gpuHoursAtMost=_NUMBER,
    unusedGpus={"type": "object", "additionalProperties": _NUMBER},
    timeFactor=_NUMBER,
    startSeconds={"type": "object", "additionalProperties": _NUMBER},
    samples={
        "type": "array",
        "items": _object(seconds=_NUMBER, wanted=_COUNT, ready=_COUNT, occupying=_COUNT),
    },
)
_SHIFT_DECISION = _object(
    seconds=_NUMBER,
    floor=_COUNT,
    lent={"type": "number", "minimum": 0, "maximum": 1},
    batchPlaces=_COUNT,
    batchAccelerators=_COUNT,
    reasons={"type": "array", "items": _STRING, "minItems": 1},
)
_PAIRS = {"type": "array", "items": {"type": "array", "items": _NUMBER, "minItems": 2, "maxItems": 2}}
_CAPACITY_SHIFT = _object(
    decisions={"type": "array", "items": _SHIFT_DECISION},
    changes=_COUNT,
    failedRuns=_COUNT,
    batchCompleted=_COUNT,
    batchLost=_COUNT,
    batchSeconds=_NUMBER,
    ttftP95AloneMs=_NUMBER_OR_NULL,
    ttftP95BesideMs=_NUMBER_OR_NULL,
    ttftP95Ratio=_NUMBER_OR_NULL,
    isTimed={"type": "boolean"},
    timeFactor=_NUMBER,
    mostWorkers=_COUNT,
    workers=_PAIRS,
    load={"type": "array", "items": _object(seconds=_NUMBER, interactive=_NUMBER, batch=_NUMBER)},
)
_GPU_HEALTH = _object(
    injected=_COUNT,
    found=_COUNT,
    replaced=_COUNT,
    falseDrains=_COUNT,
    cutStreams=_COUNT,
    secondsToServing=_NUMBER_OR_NULL,
    speed=_NUMBER,
    node=_STRING,
    replacement=_STRING,
    replacementRequests=_COUNT,
    times={"type": "object", "additionalProperties": _NUMBER},
    runs=_COUNT,
    failedRuns=_COUNT,
    streams=_COUNT,
    timeFactor=_NUMBER,
    latencies={"type": "object", "additionalProperties": _PAIRS},
    slowPod=_STRING,
)
_REAL_TIME = _object(
    models={"type": "array", "items": _STRING, "minItems": 1},
    skipped={"type": ["string", "null"]},
    requests=_COUNT,
    fallbacks=_COUNT,
    fallbackReasons={"type": "object", "additionalProperties": {"type": "integer", "minimum": 1}},
    p50Ms=_NUMBER_OR_NULL,
    p99Ms=_NUMBER_OR_NULL,
    inTimeMs=_NUMBER_OR_NULL,
    deadlineMs=_NUMBER_OR_NULL,
    fallbackLimit=_NUMBER_OR_NULL,
    requestsPerSecond=_NUMBER,
    inputTokens=_NUMBER_OR_NULL,
    outputTokens=_NUMBER_OR_NULL,
    warmUpRequests=_COUNT,
)

_STREAMING = _object(
    job=_STRING,
    skipped={"type": ["string", "null"]},
    notRun={"type": "array", "items": _STRING},
    events=_COUNT,
    sessions=_COUNT,
    repeated=_COUNT,
    late=_COUNT,
    poison=_COUNT,
    signals=_COUNT,
    superseded={"type": ["integer", "null"], "minimum": 0},
    deadLetters=_COUNT,
    deadLetterReasons={"type": "object", "additionalProperties": {"type": "integer", "minimum": 1}},
    repeatedDeadLetters=_COUNT,
    lost=_COUNT,
    duplicated=_COUNT,
    kills=_COUNT,
    recoverySeconds=_NUMBER_OR_NULL,
    eventToSignalMs=_object(p50=_NUMBER_OR_NULL, p99=_NUMBER_OR_NULL, longest=_NUMBER_OR_NULL),
    waitingMs=_PERCENTILES,
    processingMs=_PERCENTILES,
    prefixCacheHitRatio=_NUMBER_OR_NULL,
    eventsPerSecond=_NUMBER,
)
_FRONT_DOOR = _object(
    replicas=_COUNT,
    requests=_COUNT,
    failures=_COUNT,
    failureReasons=_COUNTS,
    refused=_COUNT,
    refusals=_COUNTS,
    team=_STRING,
    spentUsd=_NUMBER,
    ledgerUsd=_NUMBER,
    limitUsd=_NUMBER,
    overspendUsd=_NUMBER,
    unrecordedUsd=_NUMBER,
    reservedUsd=_NUMBER,
    recordedUsd=_NUMBER,
    countedUsd=_NUMBER_OR_NULL,
    cutStreams=_COUNT,
    cutStreamsCharged=_COUNT,
    cutTokensCharged=_COUNT,
    cutTokensCounted={"type": ["integer", "null"], "minimum": 0},
    killedReplicas=_COUNT,
    lostWithReplica=_COUNT,
    addedP50Ms=_NUMBER_OR_NULL,
    canary={
        "anyOf": [
            {"type": "null"},
            _object(model=_STRING, conversations=_COUNT, byTarget=_COUNTS, moved=_COUNT),
        ]
    },
    shed={
        "anyOf": [
            {"type": "null"},
            _object(
                model=_STRING,
                urgent=_COUNT,
                urgentRefused=_COUNT,
                low=_COUNT,
                lowRefused=_COUNT,
                lowRetried=_COUNT,
            ),
        ]
    },
    notes={"type": "array", "items": _STRING},
)

SCHEMA = _object(
    blueprint=_STRING,
    createdAt={"type": "string", "pattern": r"^\d{4}-\d\d-\d\dT.*[+-]\d\d:\d\d$"},
    simulated={"type": "boolean"},
    timed={"type": "boolean"},
    endpoint=_STRING,
    curl=_STRING,
    **_MEASUREMENT,
    objectivesMet={"type": ["boolean", "null"]},
    models={"type": "array", "items": _MODEL, "minItems": 1},
    workerLosses={"anyOf": [{"type": "null"}, {"type": "array", "items": _WORKER_LOSS}]},
    batch={"anyOf": [{"type": "null"}, {"type": "array", "items": _BATCH_OUTCOME}]},
    scaling={"anyOf": [{"type": "null"}, _SCALING]},
    capacityShift={"anyOf": [{"type": "null"}, _CAPACITY_SHIFT]},
    gpuHealth={"anyOf": [{"type": "null"}, _GPU_HEALTH]},
    realTime={"anyOf": [{"type": "null"}, _REAL_TIME]},
    streaming={"anyOf": [{"type": "null"}, _STREAMING]},
    frontDoor={"anyOf": [{"type": "null"}, _FRONT_DOOR]},
    parts={"type": "array", "items": _PART},
    replacements={"type": "array", "items": _REPLACEMENT},
    plan={"type": "object", "required": ["pools", "processes", "totals", "prices"]},
)
