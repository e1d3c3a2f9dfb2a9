"""Streaming jobs: their configuration, one JSON document, and their names in the cloud."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Final, Literal, NamedTuple, Self, get_args, get_type_hints

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


def flink_applications(platform: str, job: str, shards: int = 1) -> list[str]:
    """Return the names of a job's applications: one for each shard.

    platform: `metadata.name`.
    """
    name = f"{platform}-{job}"
    # Other numbers of shards are other applications: a snapshot says which partitions its application reads.
    return [name] if shards == 1 else [f"{name}-{number}-of-{shards}" for number in range(1, shards + 1)]


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


#: Where Managed Service for Apache Flink passes the address of the document.
PROPERTY_GROUP: Final = "job"
ADDRESS_PROPERTY: Final = "configuration"
#: What the topic of dead letters is called after the job.
_DEAD_LETTERS_SUFFIX: Final = "-dead-letters"

IamAuthentication = Literal["iam", "none"]
EndpointAuthentication = Literal["bearer", "none"]


class TopicNames(NamedTuple):
    """Names of the topics of a job."""

    events: str
    dead_letters: str
    more_events: tuple[str, ...] = ()

    @classmethod
    def of_job(cls, name: str, events: str, *more_events: str) -> Self:
        """Return the names. That of the dead letters follows from the job.

        name: Name of the job.
        events, more_events: Topics of its events.
        """
        return cls(events, name + _DEAD_LETTERS_SUFFIX, more_events)

    @property
    def all_events(self) -> tuple[str, ...]:
        """All topics of events."""
        return (self.events, *self.more_events)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobShard:
    """Which of a job's applications this is."""

    index: int
    """From 0. Of each topic, it reads the partitions ``index``, ``index + count`` and so on."""
    count: int
    """Number of applications."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobKafka:
    """The topics of a job."""

    bootstrap_servers: str
    """Brokers as ``host:port``, with commas between them."""
    authentication: IamAuthentication
    """``iam`` with TLS in the cloud, ``none`` for a broker on this machine."""
    topic: str
    """Topic of the events."""
    group: str
    """Consumer group."""
    dead_letter_topic: str
    """Topic of what could not be answered."""
    more_topics: tuple[str, ...] = ()
    """Further topics of events."""
    shard: JobShard | None = None
    """Part of the partitions; None for all."""

    @classmethod
    def of_job(
        cls,
        name: str,
        names: TopicNames,
        *,
        bootstrap_servers: str,
        authentication: IamAuthentication,
        shard: JobShard | None = None,
    ) -> Self:
        """Return the topics of a job, which is their consumer group too.

        name, names: Names of the job and of its topics.
        """
        return cls(
            bootstrap_servers=bootstrap_servers,
            authentication=authentication,
            topic=names.events,
            group=name,
            dead_letter_topic=names.dead_letters,
            more_topics=names.more_events,
            shard=shard,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSession:
    """How events become sessions."""

    key: str
    time: str
    id: str | None
    """`key`, `time`, `id`: Fields of an event: the session's owner, the time, and what identifies the event
    (None: nothing does)."""
    gap_millis: int
    """Milliseconds without an event after which a session ends."""
    debounce_millis: int
    """Milliseconds from the first new event to the prompt."""
    max_events: int
    """Events that a session keeps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPrompt:
    """The prompt of a session."""

    system: str | None
    """System message; None for none."""
    template: Mapping[str, Any]
    """Syntax tree of the template, as `prompt_template.template_tree` returns it. Its variables are
    ``events`` and ``session``."""
    max_characters: int
    """Longest prompt, in characters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamedRequest:
    """Fields of a request."""

    model: str
    max_tokens: int
    """Longest answer, in tokens."""
    response_format: Mapping[str, Any] | None
    """The API's ``response_format``; None for free text."""
    priority: str | None
    """Value of the router's priority header; None without the header."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobDoor:
    """A front door that a job sends its requests through, as `platform_keys` says."""

    model: str
    """What the door calls the job's model."""
    team: str
    """Team that pays."""
    secret: str
    """ARN of the secret with that team's key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobEndpoint:
    """The model's endpoint, and how it is called."""

    url: str
    """Address of the OpenAI API, without ``/v1``."""
    authentication: EndpointAuthentication
    """``bearer`` with a front door, else ``none``."""
    deadline_millis: int
    """Milliseconds for a call with all its attempts."""
    attempts: int
    """Most attempts."""
    max_in_flight: int
    """Most calls of the whole job at a time."""
    max_in_flight_per_subtask: int
    """Most calls of one subtask at a time."""
    max_age_millis: int | None = None
    """Milliseconds from the newest event of a session for which its prompt waits while the model answers
    nobody; None for a dead letter at the deadline."""
    door: JobDoor | None = None
    """The front door that the address is of; None for the model's own address."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSignalStore:
    """The cache that holds the signals."""

    host: str
    port: int
    """`host`, `port`: Its address."""
    tls: bool
    """Whether it is reached by TLS."""
    user: str | None
    """User of the job; None without authentication."""
    authentication: IamAuthentication
    """``iam`` with a signed token in the cloud, ``none`` on this machine."""
    cluster: bool
    """Whether it is in cluster mode."""
    cache_name: str | None
    region: str | None = None
    """`cache_name`, `region`: Name and region that tokens are signed for; None without authentication."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSignal:
    """The signal that a job writes."""

    name: str
    ttl_seconds: int
    """Seconds after which a value expires."""
    store: JobSignalStore
    """The cache that holds it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobHistory:
    """Where every written value is kept."""

    uri: str
    """Folder in S3 (``s3a://``) or on this machine (``file:///``)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamingJobConfiguration:
    """Everything that a job has to know."""

    name: str
    platform: str
    kafka: JobKafka
    session: JobSession
    prompt: JobPrompt
    request: StreamedRequest
    endpoint: JobEndpoint
    signal: JobSignal
    history: JobHistory
    """`kafka`, `session`, `prompt`, `request`, `endpoint`, `signal`, `history`: Its parts."""

    def to_json(self) -> str:
        """Return the document."""
        return json.dumps(_document(self), indent=1, ensure_ascii=False) + "\n"

    @property
    def digest(self) -> str:
        """SHA-256 of the document, which is part of its key in S3: a change starts the job again."""
        from hashlib import sha256

        return sha256(self.to_json().encode()).hexdigest()

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the configuration of a document.

        text: What `to_json` returned.
        Raises ValueError if a key is missing or unknown. The message names it.
        """
        found: Self = _part(cls, json.loads(text), "")
        return found


#: Keys that came with later releases. Left out without a value, so that the document of a job without them
#: stays the same, and is one that earlier releases read.
_LATER: Final = frozenset({"more_topics", "shard", "max_age_millis", "door"})


def _document(part: Any) -> dict[str, Any]:
    values = {field.name: getattr(part, field.name) for field in fields(part)}
    values = {name: value for name, value in values.items() if value or name not in _LATER}
    return {
        _camel(name): _document(value) if is_dataclass(value) else value for name, value in values.items()
    }


def _part(kind: Any, found: Any, path: str) -> Any:
    kinds = get_type_hints(kind)
    given = found if isinstance(found, dict) else {}
    expected = {
        key: field.name
        for field in fields(kind)
        if (key := _camel(field.name)) in given or field.name not in _LATER
    }
    wrong = sorted(expected.keys() ^ given.keys())
    if wrong:
        names = ", ".join(f"{path}.{name}".lstrip(".") for name in wrong)
        raise ValueError(f"missing or unknown keys: {names}")
    return kind(
        **{
            name: _value(kinds[name], given[key], f"{path}.{key}".lstrip("."))
            for key, name in expected.items()
        }
    )


def _value(kind: Any, found: Any, path: str) -> Any:
    kind = next((each for each in get_args(kind) if is_dataclass(each)), kind)
    if is_dataclass(kind):
        return _part(kind, found, path)
    return tuple(found) if isinstance(found, list) else found


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))
