"""The server of an engine that answers the OpenAI API itself, without a router in front of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class RequestCounter:
    """The Prometheus counter of the requests that a worker received."""

    name: str
    """Full name of its samples."""
    label: str = ""
    """The label of the samples that count, such as ``endpoint="generate"``; empty for all."""


@dataclass(frozen=True, slots=True)
class ParserFlags:
    """Arguments that name the parsers of answers."""

    program: str
    """The program that parses, by the catalogue's name."""
    reasoning: str
    tool_call: str
    """`reasoning`, `tool_call`: Names of the arguments without dashes."""

    @property
    def keys(self) -> Mapping[str, str]:
        """Argument by the key of the blueprint's ``parsers``."""
        return MappingProxyType({"reasoning": self.reasoning, "toolCall": self.tool_call})


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnServer:
    """How an engine's own server is started, and what it reports."""

    program: str
    """Its name in the tables of metrics, such as ``vllmServer``."""
    command: tuple[str, ...]
    """Program and its fixed arguments."""
    running: str
    """Gauges of the requests that a worker computes."""
    waiting: str
    """Gauges of those that wait in it."""
    requests: RequestCounter
    """How a worker counts requests."""
    latency: str | None = None
    """Histogram of the time to the first token, without ``_bucket``. None if the server reports none."""
    parsers: ParserFlags | None = None
    """Arguments that name the parsers of answers. None if the server has no such arguments."""
    health_path: str = "/health"
    """Path that answers 200 once the model is loaded."""
    has_python: bool = True
    """Whether its image has Python, in which programs of a target can run."""
    finishes_answers: bool = True
    """Whether the server ends its open answers after SIGTERM, before it exits."""
