"""What a response says, as facts that do not depend on time, on identifiers or on the words of an answer."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Any

from tests.engines.comparison.exchange import Response

Fact = str | int | float | bool | None
Facts = Mapping[str, Fact]

STREAM = "text/event-stream"
_DONE = "[DONE]"
#: Keys whose values differ between two equal requests to one engine.
_CHANGING = frozenset(
    {
        "id",
        "created",
        "created_at",
        "completed_at",
        "system_fingerprint",
        "item_id",
        "nvext",
        "sequence_number",
    }
)
_WORDS = frozenset({"content", "text", "reasoning_content", "arguments", "delta", "refusal"})


def facts_of(response: Response) -> dict[str, Fact]:
    """Return the facts of a response by name."""
    facts: dict[str, Fact] = {"status": response.status, "media type": response.media_type}
    if response.media_type == STREAM:
        return facts | _stream(response.body)
    try:
        content = json.loads(response.body)
    except ValueError:
        return facts | {"body": response.body}
    if isinstance(content, dict) and "choices" in content:
        facts["choices"] = len(content["choices"])
    return facts | dict(_flat(content, ""))


def answer_text(response: Response) -> str:
    """Return the text of all choices of an answer that is no stream."""
    choices = response.content["choices"]
    return "|".join(each.get("text") or each.get("message", {}).get("content") or "" for each in choices)


def _flat(value: Any, name: str) -> Iterator[tuple[str, Fact]]:
    """Yield the facts of a JSON value: its leaves, by their path."""
    key = name.rpartition(".")[2]
    if key in _CHANGING:
        return
    if key == "logprobs":
        yield name, None if value is None else "given"
    elif key in _WORDS and isinstance(value, str):
        yield name, "words" if value else ""
    elif isinstance(value, dict) and value:
        for inner, each in value.items():
            yield from _flat(each, f"{name}.{inner}".lstrip("."))
    elif isinstance(value, list) and value:
        for index, each in enumerate(value):
            yield from _flat(each, f"{name}.{index}".lstrip("."))
    else:
        yield name, value if not isinstance(value, (dict, list)) else "empty"


def _stream(body: str) -> dict[str, Fact]:
    """Return the facts of a stream: its events in order, per choice, and the usage."""
    facts: dict[str, Fact] = {}
    events: dict[str, list[str]] = {}
    for block in filter(None, body.split("\n\n")):
        lines = dict(line.split(": ", 1) for line in block.split("\n") if ": " in line)
        data = lines.get("data", block)
        if data == _DONE:
            events.setdefault("stream", []).append(_DONE)
            continue
        content = json.loads(data)
        if "event" in lines:  # the Responses API names its events
            events.setdefault("stream", []).append(lines["event"])
        elif not content.get("choices"):
            events.setdefault("stream", []).append("usage" if content.get("usage") else "other")
            facts |= dict(_flat(content.get("usage"), "usage"))
        for choice in content.get("choices", ()):
            name = f"choices.{choice['index']}"
            events.setdefault(name, []).append(_event(choice))
            if choice.get("finish_reason"):
                facts[f"{name}.finish_reason"] = choice["finish_reason"]
    for name, each in events.items():
        facts[f"{name}.events"] = ", ".join(event for event, _ in groupby(each))
    return facts


def _event(choice: Mapping[str, Any]) -> str:
    """Return what an event of a stream carries."""
    delta = choice.get("delta", {})
    parts = []
    if choice.get("text") or delta.get("content") or delta.get("reasoning_content"):
        parts.append("words")
    if delta.get("tool_calls"):
        parts.append("tool call")
    if choice.get("logprobs"):
        parts.append("logprobs")
    if choice.get("finish_reason"):
        parts.append("finish")
    return " + ".join(parts) or "nothing"
