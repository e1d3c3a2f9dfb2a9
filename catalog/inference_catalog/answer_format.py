"""How models mark reasoning and tool calls in their answers, and the parsers that read them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ParserNames:
    """The parsers of one program for a format."""

    reasoning: str | None = None
    """Parser that separates reasoning from the answer. None if the models do not think, or the program has no
    parser."""
    tool_call: str | None = None
    """Parser that turns text into tool calls. None if the program has no parser, or needs a chat template
    that the models do not bring."""


@dataclass(frozen=True, slots=True)
class AnswerFormat:
    """The format of a family's answers."""

    name: str
    """The catalogue's name, such as ``harmony``."""
    parsers: Mapping[str, ParserNames]
    """Parsers by the program that defines them: ``dynamo``, ``vllm`` or ``sglang``."""
    vocabulary_host: str | None
    """Host from which Dynamo's frontend downloads a vocabulary for its parsers, at the first request. Without
    it, answers lose their reasoning and tool calls, and no error says so. None if they need none."""
    source: str
    """Documents that name the parsers."""
