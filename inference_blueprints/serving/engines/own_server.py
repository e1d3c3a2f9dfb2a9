"""The server of an engine that answers the OpenAI API itself, without a router in front of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class RequestCounter:
    """The Prometheus counter of the requests that a worker received.

    Parameters
    ----------
    name
        Full name of its samples.
    label
        The label of the samples that count, such as ``endpoint="generate"``; empty for all.
    """

    name: str
    label: str = ""


@dataclass(frozen=True, slots=True)
class ParserFlags:
    """Arguments that name the parsers of answers.

    Parameters
    ----------
    program
        The program that parses, by the catalogue's name.
    reasoning, tool_call
        Names of the arguments without dashes.
    """

    program: str
    reasoning: str
    tool_call: str

    @property
    def keys(self) -> Mapping[str, str]:
        """Argument by the key of the blueprint's ``parsers``."""
        return MappingProxyType({"reasoning": self.reasoning, "toolCall": self.tool_call})


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnServer:
    """How an engine's own server is started, and what it reports.

    Parameters
    ----------
    program
        Its name in the tables of metrics, such as ``vllmServer``.
    command
        Program and its fixed arguments.
    running, waiting
        Gauges of the requests that a worker computes, and of those that wait in it.
    requests
        How a worker counts requests.
    latency
        Histogram of the time to the first token, without ``_bucket``. None if the server reports none.
    parsers
        Arguments that name the parsers of answers. None if the server has no such arguments.
    health_path
        Path that answers 200 once the model is loaded.
    has_python
        Whether its image has Python, in which programs of a target can run.
    finishes_answers
        Whether the server ends its open answers after SIGTERM, before it exits.
    """

    program: str
    command: tuple[str, ...]
    running: str
    waiting: str
    requests: RequestCounter
    latency: str | None = None
    parsers: ParserFlags | None = None
    health_path: str = "/health"
    has_python: bool = True
    finishes_answers: bool = True
