"""The configuration of a streaming job: one JSON document, which the Flink job reads.

On Managed Service for Apache Flink, the property ``configuration`` of the property group ``job`` is the S3
address of the document. On a laptop, the argument ``--configuration`` is its path. Keys are camelCase. The
job's Java records (`runtime/java/enrichment-job`) have the same names; `tests/runtime/streaming/job.json` is
the example that tests of both read.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from hashlib import sha256
from typing import Any, Final, Literal, Self, get_type_hints

#: Where Managed Service for Apache Flink passes the address of the document.
PROPERTY_GROUP: Final = "job"
ADDRESS_PROPERTY: Final = "configuration"
#: What the topic of dead letters is called after the job.
DEAD_LETTERS_SUFFIX: Final = "-dead-letters"

IamAuthentication = Literal["iam", "none"]
EndpointAuthentication = Literal["bearer", "none"]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobKafka:
    """The topics of a job.

    Parameters
    ----------
    bootstrap_servers
        Brokers as ``host:port``, with commas between them.
    authentication
        ``iam`` with TLS in the cloud, ``none`` for a broker on this machine.
    topic, dead_letter_topic
        Topic of the events, and of what could not be answered.
    group
        Consumer group.
    """

    bootstrap_servers: str
    authentication: IamAuthentication
    topic: str
    group: str
    dead_letter_topic: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSession:
    """How events become sessions.

    Parameters
    ----------
    key, time, id
        Fields of an event: the session's owner, the time, and what identifies the event (None: nothing does).
    gap_millis
        Milliseconds without an event after which a session ends.
    debounce_millis
        Milliseconds from the first new event to the prompt.
    max_events
        Events that a session keeps.
    """

    key: str
    time: str
    id: str | None
    gap_millis: int
    debounce_millis: int
    max_events: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPrompt:
    """The prompt of a session.

    Parameters
    ----------
    system
        System message; None for none.
    template
        Syntax tree of the template, as `prompt_template.template_tree` returns it. Its variables are
        ``events`` and ``session``.
    max_characters
        Longest prompt, in characters.
    """

    system: str | None
    template: Mapping[str, Any]
    max_characters: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamedRequest:
    """Fields of a request.

    Parameters
    ----------
    model
        Name of the model.
    max_tokens
        Longest answer, in tokens.
    response_format
        The API's ``response_format``; None for free text.
    priority
        Value of the router's priority header; None without the header.
    """

    model: str
    max_tokens: int
    response_format: Mapping[str, Any] | None
    priority: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobEndpoint:
    """The model's endpoint, and how it is called.

    Parameters
    ----------
    url
        Address of the OpenAI API, without ``/v1``.
    authentication
        How calls are authenticated.
    deadline_millis
        Milliseconds for a call with all its attempts.
    attempts
        Most attempts.
    max_in_flight
        Most calls of the whole job at a time.
    max_in_flight_per_subtask
        Most calls of one subtask at a time.
    """

    url: str
    authentication: EndpointAuthentication
    deadline_millis: int
    attempts: int
    max_in_flight: int
    max_in_flight_per_subtask: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSignalStore:
    """The cache that holds the signals.

    Parameters
    ----------
    host, port
        Its address.
    tls
        Whether it is reached by TLS.
    user
        User of the job; None without authentication.
    authentication
        ``iam`` with a signed token in the cloud, ``none`` on this machine.
    cluster
        Whether it is in cluster mode.
    cache_name, region
        Name and region that tokens are signed for; None without authentication.
    """

    host: str
    port: int
    tls: bool
    user: str | None
    authentication: IamAuthentication
    cluster: bool
    cache_name: str | None
    region: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSignal:
    """The signal that a job writes.

    Parameters
    ----------
    name
        Name of the signal.
    ttl_seconds
        Seconds after which a value expires.
    store
        The cache that holds it.
    """

    name: str
    ttl_seconds: int
    store: JobSignalStore


@dataclass(frozen=True, slots=True, kw_only=True)
class JobHistory:
    """Where every written value is kept.

    Parameters
    ----------
    uri
        Folder in S3 (``s3a://``) or on this machine (``file:///``).
    """

    uri: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamingJobConfiguration:
    """Everything that a job has to know.

    Parameters
    ----------
    name, platform
        Name of the job, and of the platform.
    kafka, session, prompt, request, endpoint, signal, history
        Its parts.
    """

    name: str
    platform: str
    kafka: JobKafka
    session: JobSession
    prompt: JobPrompt
    request: StreamedRequest
    endpoint: JobEndpoint
    signal: JobSignal
    history: JobHistory

    def to_json(self) -> str:
        """Return the document."""
        return json.dumps(_document(self), indent=1, ensure_ascii=False) + "\n"

    @property
    def digest(self) -> str:
        """SHA-256 of the document, which is part of its key in S3: a change starts the job again."""
        return sha256(self.to_json().encode()).hexdigest()

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the configuration of a document.

        Parameters
        ----------
        text
            What `to_json` returned.

        Raises
        ------
        ValueError
            If a key is missing or unknown. The message names it.
        """
        found: Self = _part(cls, json.loads(text), "")
        return found


def _document(part: Any) -> dict[str, Any]:
    values = {field.name: getattr(part, field.name) for field in fields(part)}
    return {
        _camel(name): _document(value) if is_dataclass(value) else value for name, value in values.items()
    }


def _part(kind: Any, found: Any, path: str) -> Any:
    kinds = get_type_hints(kind)
    expected = {_camel(field.name): field.name for field in fields(kind)}
    given = found if isinstance(found, dict) else {}
    wrong = sorted(expected.keys() ^ given.keys())
    if wrong:
        names = ", ".join(f"{path}.{name}".lstrip(".") for name in wrong)
        raise ValueError(f"missing or unknown keys: {names}")
    return kind(
        **{
            name: _part(kinds[name], given[key], f"{path}.{key}".lstrip("."))
            if is_dataclass(kinds[name])
            else given[key]
            for key, name in expected.items()
        }
    )


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))
