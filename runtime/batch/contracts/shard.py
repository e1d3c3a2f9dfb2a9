"""A shard: its lines, the message that asks for it, and what is said when it is done."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class ShardLine:
    """One request of a shard; a line of its file.

    Parameters
    ----------
    ordinal
        Place within the shard, from 0; what a commit is keyed by.
    line
        Line of its segment of the input, from 1; the plan knows at which line each segment begins.
    custom_id
        The team's own name for the request, unique within the job.
    tokens
        Estimated input tokens.
    body
        The request's body, where the input had one.
    row
        Values for the job's template, where the body is rendered by the worker.
    """

    ordinal: int
    line: int
    custom_id: str
    tokens: int
    body: Mapping[str, Any] | None = None
    row: Mapping[str, Any] | None = None

    def to_json(self) -> str:
        """Return the line of the file, without its end."""
        values = {key: value for key, value in asdict(self).items() if value is not None}
        return json.dumps(values, ensure_ascii=False, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str | bytes) -> ShardLine:
        """Read a line of the file.

        Raises
        ------
        ValueError
            If it is not JSON.
        TypeError
            If it is not such a line.
        """
        return cls(**json.loads(text))


@dataclass(frozen=True, slots=True)
class ShardMessage:
    """What a worker is asked for; the body of a message.

    Parameters
    ----------
    job, shard
        The job's identifier and the shard's name.
    task_token
        Token by which Step Functions is told of progress and the end.
    """

    job: str
    shard: str
    task_token: str

    def to_json(self) -> str:
        """Return the message's body."""
        return json.dumps({"job": self.job, "shard": self.shard, "taskToken": self.task_token})

    @classmethod
    def from_json(cls, text: str) -> ShardMessage:
        """Read a message's body.

        Raises
        ------
        ValueError
            If it is not JSON.
        KeyError
            If a field is missing.
        """
        body = json.loads(text)
        return cls(job=body["job"], shard=body["shard"], task_token=body["taskToken"])


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens that the endpoint counted.

    Parameters
    ----------
    input_tokens, cached_tokens, output_tokens
        Tokens of prompts, those of them that the KV cache held, and tokens of answers.
    """

    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0

    @classmethod
    def of_answer(cls, body: Mapping[str, Any]) -> Usage:
        """Read what the endpoint counted for one answer; nothing where it says nothing of it.

        Parameters
        ----------
        body
            The answer.
        """
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
class ShardDone:
    """What became of a shard; `done.json` says it of a turn, and the output of its task of all turns.

    Parameters
    ----------
    shard
        The shard's name.
    completed, failed
        Lines with an answer, and lines that ended as an error.
    attempts
        Requests that were sent, those sent again included.
    usage
        What the endpoint counted over all answers that are in the output.
    expired
        Those of the failed that the deadline overtook.
    """

    shard: str
    completed: int
    failed: int
    attempts: int
    usage: Usage = field(default_factory=Usage)
    expired: int = 0

    def followed_by(self, turn: ShardDone) -> ShardDone:
        """Return what became of the shard with another turn, which was for those that had expired.

        Parameters
        ----------
        turn
            What became of that.
        """
        return ShardDone(
            self.shard,
            self.completed + turn.completed,
            self.failed - self.expired + turn.failed,
            self.attempts + turn.attempts,
            self.usage + turn.usage,
            turn.expired,
        )

    def to_json(self) -> str:
        """Return the document."""
        return json.dumps(asdict(self), separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str | bytes) -> ShardDone:
        """Read the document.

        Raises
        ------
        ValueError
            If it is not JSON.
        TypeError
            If it is not such a document.
        """
        values = json.loads(text)
        return cls(**{**values, "usage": Usage(**values["usage"])})
