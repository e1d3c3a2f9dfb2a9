"""The history of a streaming job: a line of JSON for each answer, in folders by day and hour.

The job writes its lines in files that end at each checkpoint. The redrive of dead letters writes one object
per answer, so that a second redrive of the same version replaces the first one's line.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

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
