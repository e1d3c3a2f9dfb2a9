"""A client that counts tokens: whatever is missing, doubled or refused is a fault."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from inference_blueprints.measure.completions.completion_client import (
    CountedStream,
    RequestOutcome,
    TokenUsage,
)

WHOLE = RequestOutcome(0.0, 0.0, 0.1, 0.2, 0.3, TokenUsage(9, 3, 0))


def event(text: str, reason: str | None = None) -> dict[str, Any]:
    return {"choices": [{"delta": {"content": text}, "finish_reason": reason}]}


def counted(*events: dict[str, Any]) -> CountedStream:
    stream = CountedStream(3)
    for each in events:
        stream.take(each)
    return stream


def test_a_stream_with_every_token_once_has_no_fault() -> None:
    stream = counted(event(" bado"), event(" dado"), event(" gado"), event("", "length"), {"choices": []})
    assert stream.tokens == 3
    assert stream.fault(WHOLE) is None


@pytest.mark.parametrize(
    ("events", "outcome", "fault"),
    [
        ([event(" bado"), event(" dado", "length")], WHOLE, "2 of 3 tokens"),
        ([event(" bado dado dado gado", "length")], WHOLE, "4 of 3 tokens"),
        ([event(" bado dado gado")], WHOLE, "finish reasons are []"),
        ([event(" bado dado gado", "stop")], WHOLE, "finish reasons are ['stop']"),
        ([event(" bado dado gado", "length"), event("", "length")], WHOLE, "finish reasons"),
        ([event(" bado dado gado", "length")], replace(WHOLE, usage=TokenUsage(9, 2, 0)), "usage"),
        ([event(" bado dado gado", "length")], replace(WHOLE, usage=None), "usage"),
        ([], replace(WHOLE, failure="HTTP 503", failure_detail="no worker"), "HTTP 503 no worker"),
    ],
)
def test_a_stream_that_was_cut_is_told(
    events: list[dict[str, Any]], outcome: RequestOutcome, fault: str
) -> None:
    assert fault in (counted(*events).fault(outcome) or "")
