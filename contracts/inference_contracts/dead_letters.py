"""What streaming jobs keep of their answers: the history, and dead letters, which got none."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, Self

# The history of a streaming job: a line of JSON for each answer, in folders by day and hour.
#
# The job writes its lines in files that end at each checkpoint. The redrive of dead letters writes one object
# per answer, so that a second redrive of the same version replaces the first one's line.

#: Names of the redrive's objects, below the folders of day and hour.
REDRIVEN_PREFIX: Final = "redriven-"
#: A version is the time of the session's newest event in milliseconds, times this, plus a number.
_VERSIONS_PER_MILLISECOND: Final = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamedAnswer:
    """A line of the history."""

    job: str
    signal: str
    session: str
    version: int
    """`job`, `signal`, `session`, `version`: What the answer is of."""
    value: str
    """The answer."""
    model: str
    prompt_hash: str
    """SHA-256 of the request, as hexadecimal digits."""
    time: int
    """When the call ended, in milliseconds since 1970."""
    attempts: int
    """Calls that were sent."""
    call_millis: int
    """Duration of the call with its retries."""
    prompt_tokens: int
    cached_tokens: int
    answer_tokens: int
    """`prompt_tokens`, `cached_tokens`, `answer_tokens`: Tokens of the prompt, those of them that came from
    the prefix cache, and those of the answer."""

    def to_json(self) -> str:
        """Return the line, with a line feed at its end."""
        document = {
            "job": self.job,
            "signal": self.signal,
            "session": self.session,
            "version": self.version,
            "value": self.value,
            "model": self.model,
            "promptHash": self.prompt_hash,
            "time": self.time,
            "attempts": self.attempts,
            "callMillis": self.call_millis,
            "promptTokens": self.prompt_tokens,
            "cachedTokens": self.cached_tokens,
            "answerTokens": self.answer_tokens,
        }
        return json.dumps(document, separators=(",", ":"), ensure_ascii=False) + "\n"


def newest_event_seconds(version: int) -> float:
    """Return when the newest event of a version happened, in seconds since 1970.

    version: The version of a session.
    """
    return version / _VERSIONS_PER_MILLISECOND / 1000


def redriven_name(session: str, version: int) -> str:
    """Return the name of the redrive's object, below the job's history. Equal versions have equal names.

    session, version: What the answer is of.
    """
    at = datetime.fromtimestamp(newest_event_seconds(version), UTC)
    digest = hashlib.sha256(session.encode()).hexdigest()
    return f"date={at:%Y-%m-%d}/hour={at:%H}/{REDRIVEN_PREFIX}{digest}-{version}.jsonl"


#: Reasons of single events. They have the event and where Kafka has it.
EVENT_REASONS: Final = {
    "poison": "the event is not JSON, or has no key or no valid time",
    "late": "the session already went on without the event",
    "too_large": "the event is larger than the job accepts",
    "template": "the template does not fit the event",
}
#: Reasons of versions of a session. They have the session, the version and the request.
VERSION_REASONS: Final = {
    "timeout": "the model gave no answer in time",
    "endpoint": "the endpoint could not be reached or refused the request",
    "budget": "the budget of the team was spent until the session was too old",
    "answer": "the answer of the model does not have the form that the job asks for",
}
REASONS: Final = EVENT_REASONS | VERSION_REASONS


class DeadLetterError(ValueError):
    """A record that is not a dead letter. The message names the field."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventPosition:
    """Where Kafka has an event."""

    topic: str
    partition: int
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """An event or a version of a session without an answer.

    Raises DeadLetterError if the reason is unknown, or needs a field that is missing.
    """

    job: str
    reason: str
    """One of `REASONS`."""
    message: str
    """What happened, for people."""
    at: int
    """When it happened; milliseconds since 1970."""
    attempts: int
    """Requests that were sent."""
    session: str | None = None
    version: int | None = None
    """`session`, `version`: Owner and version of the session; the version is None if it is about a single
    event, and the owner if that event does not name one."""
    event: bytes | None = None
    """Bytes of the event; None if it is about a version, or the event does not fit into a record."""
    request: Mapping[str, Any] | None = None
    """Body of the chat completion; None if it is about an event, or does not fit into a record."""
    source: EventPosition | None = None
    """Where Kafka has the event; None if it is about a version."""

    def __post_init__(self) -> None:
        if self.reason not in REASONS:
            raise DeadLetterError(f"reason: got {self.reason!r}; allowed are {', '.join(REASONS)}")
        of_event = self.reason in EVENT_REASONS
        needed = {
            "source": of_event,
            "event": of_event and self.reason != "too_large",
            "session": not of_event,
            "version": not of_event,
        }
        missing = [name for name, need in needed.items() if need and getattr(self, name) is None]
        if missing:
            raise DeadLetterError(f"{', '.join(missing)}: missing, but the reason {self.reason} needs it")

    def to_json(self) -> str:
        """Return the record as it is written."""
        source = self.source
        return json.dumps(
            {
                "job": self.job,
                "reason": self.reason,
                "message": self.message,
                "at": self.at,
                "attempts": self.attempts,
                "session": self.session,
                "version": self.version,
                "event": None if self.event is None else base64.b64encode(self.event).decode(),
                "request": self.request,
                "source": source
                and {"topic": source.topic, "partition": source.partition, "offset": source.offset},
            },
            separators=(",", ":"),
        )

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Read a record. Fields that a newer job adds are ignored.

        Raises DeadLetterError if it is not a dead letter.
        """
        try:
            fields = json.loads(text)
        except ValueError as error:
            raise DeadLetterError(f"it is not JSON: {error}") from error
        if not isinstance(fields, dict):
            raise DeadLetterError("it is not an object")
        return cls(
            job=_field(fields, "job", str),
            reason=_field(fields, "reason", str),
            message=_field(fields, "message", str),
            at=_field(fields, "at", int),
            attempts=_field(fields, "attempts", int),
            session=_optional(fields, "session", str),
            version=_optional(fields, "version", int),
            event=_event(_optional(fields, "event", str)),
            request=_optional(fields, "request", dict),
            source=_source(_optional(fields, "source", dict)),
        )


def _event(encoded: str | None) -> bytes | None:
    try:
        return None if encoded is None else base64.b64decode(encoded, validate=True)
    except binascii.Error as error:
        raise DeadLetterError("event: must be base64") from error


def _source(fields: Mapping[str, Any] | None) -> EventPosition | None:
    if fields is None:
        return None
    return EventPosition(
        topic=_field(fields, "topic", str),
        partition=_field(fields, "partition", int),
        offset=_field(fields, "offset", int),
    )


def _field(fields: Mapping[str, Any], name: str, type_: type) -> Any:
    value = fields.get(name)
    if not isinstance(value, type_) or isinstance(value, bool):
        raise DeadLetterError(f"{name}: must be {_WORDS[type_]}; got {json.dumps(value)[:80]}")
    return value


def _optional(fields: Mapping[str, Any], name: str, type_: type) -> Any:
    return None if fields.get(name) is None else _field(fields, name, type_)


_WORDS: Final = {str: "a string", int: "a whole number", dict: "an object"}
