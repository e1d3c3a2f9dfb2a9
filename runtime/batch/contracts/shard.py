"""A shard: its lines, the message that assigns it to a worker, and its result."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from inference_contracts.json_record import JsonRecord

#: Codes of lines for which the deadline came too soon: while they waited for the model, or for their team's
#: budget at the front door. A redrive runs them.
EXPIRED_CODES: Final = frozenset({"batch_expired", "insufficient_quota"})


@dataclass(frozen=True, slots=True)
class ShardLine(JsonRecord):
    """A request of a shard: one line of its file."""

    ordinal: int
    """Position within the shard, from 0. Commits identify the line by it."""
    line: int
    """Line of its segment of the input, from 1. The plan knows the first line of each segment."""
    custom_id: str
    """The team's name for the request, unique within the job."""
    tokens: int
    body: Mapping[str, Any]
    """The request's body. That of a row was rendered from the job's template when the input was checked."""
    images: tuple[str, ...] = ()
    """Addresses in S3 of images that go before the prompt. The worker inserts them."""

    def to_json(self) -> str:
        """Return the line of the file, without its line end.

        Text of the team keeps its length: non-ASCII is not escaped.
        """
        values = {key: value for key, value in self.to_values().items() if value != ()}
        return json.dumps(values, ensure_ascii=False, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class ShardMessage:
    """The body of a message that assigns a shard to a worker."""

    job: str
    """The job's identifier."""
    shard: str
    task_token: str
    """Step Functions token to report progress and the end."""

    def to_json(self) -> str:
        return json.dumps({"job": self.job, "shard": self.shard, "taskToken": self.task_token})

    @classmethod
    def from_json(cls, text: str) -> ShardMessage:
        """Read the body of a message.

        Raises ValueError if it is not JSON. Raises KeyError if a field is missing.
        """
        body = json.loads(text)
        return cls(job=body["job"], shard=body["shard"], task_token=body["taskToken"])


@dataclass(frozen=True, slots=True)
class Usage(JsonRecord):
    """Tokens that the endpoint counted."""

    input_tokens: int = 0
    """Prompt tokens."""
    cached_tokens: int = 0
    """Prompt tokens found in the KV cache."""
    output_tokens: int = 0
    """Output tokens."""

    @classmethod
    def of_answer(cls, body: Mapping[str, Any]) -> Usage:
        """Read the token counts of an answer; zero if the answer has none."""
        usage = body.get("usage")
        if not isinstance(usage, dict):
            return cls()
        details = usage.get("prompt_tokens_details") or {}
        return cls(
            usage.get("prompt_tokens") or 0,
            details.get("cached_tokens") or 0,
            usage.get("completion_tokens") or 0,
        )

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input_tokens + other.input_tokens,
            self.cached_tokens + other.cached_tokens,
            self.output_tokens + other.output_tokens,
        )


@dataclass(frozen=True, slots=True)
class ShardDone(JsonRecord):
    """Result of a shard.

    `done.json` holds that of one turn; the output of the shard's task holds that of all turns.
    """

    shard: str
    completed: int
    """Lines with an answer."""
    failed: int
    """Lines that ended with an error."""
    attempts: int
    """Number of requests sent, including retries."""
    usage: Usage = field(default_factory=Usage)
    """Tokens that the endpoint counted over all answers in the output."""
    expired: int = 0
    """Failed lines that expired at the deadline."""

    def followed_by(self, turn: ShardDone) -> ShardDone:
        """Add a further turn, which ran the expired lines, to the result of the shard.

        turn: Result of the further turn.
        """
        return ShardDone(
            self.shard,
            self.completed + turn.completed,
            self.failed - self.expired + turn.failed,
            self.attempts + turn.attempts,
            self.usage + turn.usage,
            turn.expired,
        )
