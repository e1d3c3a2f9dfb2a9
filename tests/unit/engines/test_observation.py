"""Facts of a response: what two engines that do the same have in common."""

from __future__ import annotations

import json

import pytest

from tests.engines.comparison.exchange import Response
from tests.engines.comparison.observation import STREAM, answer_text, facts_of


def _answer(**changes: object) -> Response:
    choice = {"index": 0, "text": " nebe nuvo", "finish_reason": "length", "logprobs": None}
    content = {"id": "cmpl-1", "created": 1, "model": "m", "choices": [choice], "usage": {"total_tokens": 9}}
    return Response(200, "application/json", json.dumps({**content, **changes}))


def _stream(*events: object) -> Response:
    lines = [event if isinstance(event, str) else f"data: {json.dumps(event)}" for event in events]
    return Response(200, STREAM, "\n\n".join([*lines, "data: [DONE]", ""]))


def _words(text: str, index: int = 0, **more: object) -> dict[str, object]:
    return {"id": "1", "choices": [{"index": index, "text": text, **more}]}


def test_words_identifiers_and_times_are_no_facts() -> None:
    assert facts_of(_answer(id="cmpl-2", created=2)) == facts_of(_answer())
    assert facts_of(_answer()) == {
        "status": 200,
        "media type": "application/json",
        "model": "m",
        "choices": 1,
        "choices.0.index": 0,
        "choices.0.text": "words",
        "choices.0.finish_reason": "length",
        "choices.0.logprobs": None,
        "usage.total_tokens": 9,
    }


@pytest.mark.parametrize(
    "changes",
    [
        {"usage": {"total_tokens": 10}},
        {"choices": []},
        {"choices": [{"index": 0, "text": "", "finish_reason": "length", "logprobs": None}]},
        {"choices": [{"index": 0, "text": "a", "finish_reason": "stop", "logprobs": None}]},
        {"choices": [{"index": 0, "text": "a", "finish_reason": "length", "logprobs": {"tokens": ["a"]}}]},
    ],
)
def test_everything_else_is_a_fact(changes: dict[str, object]) -> None:
    assert facts_of(_answer(**changes)) != facts_of(_answer())


def test_the_message_of_an_error_is_a_fact() -> None:
    one = Response(400, "application/json", '{"message": "too long", "code": 400}')
    other = Response(400, "application/json", '{"message": "too short", "code": 400}')
    assert facts_of(one) == {
        "status": 400,
        "media type": "application/json",
        "message": "too long",
        "code": 400,
    }
    assert facts_of(one) != facts_of(other)


def test_a_body_that_is_no_json_is_a_fact() -> None:
    assert facts_of(Response(405, "", ""))["body"] == ""


def test_a_stream_is_its_kinds_of_events_per_choice() -> None:
    usage = {"choices": [], "usage": {"completion_tokens": 3}}
    facts = facts_of(
        _stream(_words("a"), _words("b", 1), _words("c"), _words("", finish_reason="length"), usage)
    )
    assert facts["choices.0.events"] == "words, finish"
    assert facts["choices.0.finish_reason"] == "length"
    assert facts["choices.1.events"] == "words"
    assert facts["usage.completion_tokens"] == 3
    assert facts["stream.events"] == "usage, [DONE]"


def test_the_number_of_events_is_no_fact_but_their_order_is() -> None:
    short = facts_of(_stream(_words("a"), _words("b", finish_reason="stop")))
    long = facts_of(_stream(_words("a"), _words("b"), _words("c", finish_reason="stop")))
    turned = facts_of(_stream(_words("a", finish_reason="stop"), _words("b")))
    assert short == long != turned
    assert short["choices.0.events"] == "words, words + finish"


def test_events_with_names_are_read_too() -> None:
    delta = 'event: response.output_text.delta\ndata: {"type": "x"}'
    assert facts_of(_stream(delta, delta))["stream.events"] == "response.output_text.delta, [DONE]"


def test_a_stream_that_is_cut_has_no_end() -> None:
    cut = Response(200, STREAM, f"data: {json.dumps(_words('a'))}\n\n")
    assert "stream.events" not in facts_of(cut)


@pytest.mark.parametrize("choice", [{"text": "a b"}, {"message": {"content": "a b"}}])
def test_the_words_of_an_answer_can_be_compared(choice: dict[str, object]) -> None:
    assert answer_text(_answer(choices=[choice])) == "a b"
