"""The requests that both kinds of engines get, in this order.

Answers have a stated length, no natural end and the most likely words, unless a case is about these.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from inference_blueprints.measure.tokenizer import random_text

_CHAT, _TEXT = "/v1/chat/completions", "/v1/completions"
_STREAM = {"stream": True, "stream_options": {"include_usage": True}}
_VOWELS = ["a", "e", "i", "o", "u"]
_SCHEMA = {"type": "string", "enum": ["yes", "no"]}
_TOOL = {
    "type": "function",
    "function": {
        "name": "weather",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string", "enum": ["Oslo", "Rome"]}},
            "required": ["city"],
            "additionalProperties": False,
        },
    },
}
_NATURAL_END = {"ignore_eos": None}


@dataclass(frozen=True, slots=True)
class Case:
    """A request."""

    name: str
    path: str
    body: Mapping[str, Any] | bytes | None
    """Its body. None for a GET. Bytes are sent as they are."""
    same_words_as: str | None = field(default=None)
    """An earlier equal request, with whose words its own are compared."""


def cases(model: str, context: int) -> Iterator[Case]:
    """Yield the cases of a model.

    context: Longest prompt and answer together, in tokens.
    """
    yield from _of_both(model, context)
    yield from _of_chats(model, context)
    yield from _of_texts(model, context)
    yield from _of_bodies(model)


def _chat(served: str, name: str, /, **changes: Any) -> Case:
    messages = [{"role": "user", "content": "Hello"}]
    return Case(f"chat, {name}", _CHAT, _body({"model": served, "messages": messages}, changes))


def _text(served: str, name: str, /, **changes: Any) -> Case:
    prompt = random_text(20, seed=3)
    return Case(f"text, {name}", _TEXT, _body({"model": served, "prompt": prompt}, changes))


def _body(request: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return a request. A change to None removes a field."""
    whole = {**request, "max_tokens": 8, "temperature": 0, "ignore_eos": True, **changes}
    return {name: value for name, value in whole.items() if value is not None}


def _of_both(model: str, context: int) -> Iterator[Case]:
    """Yield what can be asked of both paths."""
    for make in (_chat, _text):
        for name, changes in _SAMPLING.items():
            yield make(model, name, **changes)
        yield make(model, "unknown model", model="nobody")
        yield make(model, "no model", model=None)
        yield make(model, "answer beyond the context", max_tokens=context)
        yield make(model, "answer beyond the context, stream", max_tokens=context, **_STREAM)
        for options in ({"temperature": 0}, {"temperature": 1, "seed": 7}):
            first = make(model, f"once, {options}", **options)
            again = make(model, f"again, {options}", **options)
            yield from (first, Case(again.name, again.path, again.body, same_words_as=first.name))


#: What changes in the request, by name.
_SAMPLING: Mapping[str, dict[str, Any]] = {
    "plain": {},
    "stream": {"stream": True},
    "stream with usage": _STREAM,
    "stream with usage in each event": {
        "stream": True,
        "stream_options": {"include_usage": True, "continuous_usage_stats": True},
    },
    "stream_options without stream": {"stream_options": {"include_usage": True}},
    "no length": {"max_tokens": None, **_NATURAL_END, "stop": _VOWELS},
    "one token": {"max_tokens": 1},
    "no token": {"max_tokens": 0},
    "negative length": {"max_tokens": -1},
    "length as text": {"max_tokens": "8"},
    "length with a fraction": {"max_tokens": 1.5},
    "min_tokens": {"min_tokens": 8, **_NATURAL_END},
    "min_tokens above max_tokens": {"min_tokens": 9},
    "two choices": {"n": 2, "temperature": 1},
    "two choices, stream": {"n": 2, "temperature": 1, **_STREAM},
    "two choices without temperature": {"n": 2},
    "no choice": {"n": 0},
    "129 choices": {"n": 129},
    "stop that never comes": {"stop": ["\u2603"], **_NATURAL_END},
    "stop": {"stop": _VOWELS, "max_tokens": 50, **_NATURAL_END},
    "stop, stream": {"stop": _VOWELS, "max_tokens": 50, **_NATURAL_END, **_STREAM},
    "stop in the answer": {
        "stop": _VOWELS,
        "max_tokens": 50,
        "include_stop_str_in_output": True,
        **_NATURAL_END,
    },
    "stop and no natural end": {"stop": _VOWELS},
    "empty stop": {"stop": [""]},
    "33 stop tokens": {"stop_token_ids": list(range(3, 36))},
    "temperature 9": {"temperature": 9},
    "temperature -1": {"temperature": -1},
    "temperature as text": {"temperature": "hot"},
    "top_p 0": {"top_p": 0},
    "top_p 2": {"top_p": 2},
    "top_k 0": {"top_k": 0},
    "top_k -5": {"top_k": -5},
    "min_p": {"min_p": 0.1},
    "presence_penalty 3": {"presence_penalty": 3},
    "frequency_penalty": {"frequency_penalty": 1.0},
    "repetition_penalty 0": {"repetition_penalty": 0},
    "logit_bias": {"logit_bias": {"1500": 100}},
    "logit_bias of 1000": {"logit_bias": {"1500": 1000}},
    "seed as text": {"seed": "x"},
    "seed too large": {"seed": 2**70},
    "user": {"user": "me"},
    "unknown field": {"frobnicate": 1},
    "priority": {"nvext": {"agent_hints": {"priority": 1}}},
    "best_of": {"best_of": 2},
    "model as a number": {"model": 5},
    "stream as text": {"stream": "yes"},
}


def _of_chats(model: str, context: int) -> Iterator[Case]:
    """Yield what only chats can ask."""
    question = [{"role": "user", "content": "Hello"}]
    called = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
    messages: Mapping[str, Any] = {
        "none": [],
        "no field": None,
        "text": "Hello",
        "without role": [{"content": "x"}],
        "unknown role": [{"role": "king", "content": "x"}],
        "without content": [{"role": "user"}],
        "content as a number": [{"role": "user", "content": 5}],
        "parts": [{"role": "user", "content": [{"type": "text", "text": "Hello"}]}],
        "system": [{"role": "system", "content": "x"}, *question],
        "developer": [{"role": "developer", "content": "x"}, *question],
        "assistant at the end": [*question, {"role": "assistant", "content": "z"}],
        "result of a tool": [
            *question,
            {"role": "assistant", "content": None, "tool_calls": [called]},
            {"role": "tool", "tool_call_id": "c1", "content": "rain"},
        ],
        "beyond the context": [{"role": "user", "content": random_text(context, seed=1)}],
    }
    for name, value in messages.items():
        yield _chat(model, f"messages: {name}", messages=value)
    for name, changes in _CHAT_OPTIONS.items():
        yield _chat(model, name, **changes)


_SHAPED = {"type": "json_schema", "json_schema": {"name": "x", "schema": _SCHEMA, "strict": True}}
_NOT_THINKING = {"chat_template_kwargs": {"enable_thinking": False}}
_NAMED = {"type": "function", "function": {"name": "weather"}}
_CHAT_OPTIONS: Mapping[str, dict[str, Any]] = {
    "max_completion_tokens": {"max_tokens": None, "max_completion_tokens": 5},
    "logprobs": {"logprobs": True, "top_logprobs": 2},
    "logprobs, stream": {"logprobs": True, "top_logprobs": 2, **_STREAM},
    "top_logprobs alone": {"top_logprobs": 2},
    "25 top_logprobs": {"logprobs": True, "top_logprobs": 25},
    "tools": {"tools": [_TOOL]},
    "tools, stream": {"tools": [_TOOL], **_STREAM},
    "tools that may not be called": {"tools": [_TOOL], "tool_choice": "none"},
    "a tool that must be called": {
        "tools": [_TOOL],
        "tool_choice": _NAMED,
        "max_tokens": 64,
        **_NATURAL_END,
        **_NOT_THINKING,
    },
    "an unknown tool that must be called": {
        "tools": [_TOOL],
        "tool_choice": {"type": "function", "function": {"name": "other"}},
    },
    "tool_choice without tools": {"tool_choice": "required"},
    "a tool without a function": {"tools": [{"type": "function"}]},
    "schema": {"response_format": _SHAPED, "max_tokens": 64, **_NATURAL_END, **_NOT_THINKING},
    "wrong schema": {
        "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "poem"}}}
    },
    "no schema": {"response_format": {"type": "json_schema"}},
    "unknown response_format": {"response_format": {"type": "poem"}},
    "no thinking": _NOT_THINKING,
    "reasoning_effort": {"reasoning_effort": "low"},
}


def _of_texts(model: str, context: int) -> Iterator[Case]:
    """Yield what only completions can ask."""
    prompts: Mapping[str, Any] = {
        "token ids": [5, 6, 7, 300],
        "two texts": ["Hello", "World"],
        "two lists of token ids": [[5, 6], [7, 8]],
        "empty": "",
        "empty list": [],
        "number": 5,
        "no field": None,
        "token id beyond the vocabulary": [5, 10**6],
        "negative token id": [-5],
        "beyond the context": random_text(context + 1, seed=1),
        "as long as the context": random_text(context, seed=1),
        "that fills the context": random_text(context - 8, seed=2),
    }
    for name, value in prompts.items():
        yield _text(model, f"prompt: {name}", prompt=value)
    beyond = random_text(context + 1, seed=1)
    yield _text(model, "prompt: beyond the context, stream", prompt=beyond, **_STREAM)
    near = {"prompt": random_text(context - 8, seed=2), "max_tokens": None}
    yield _text(model, "prompt: near the end of the context, no length", **near)
    yield _text(model, "prompt: near the end of the context, no length, stream", **near, **_STREAM)
    for name, changes in _TEXT_OPTIONS.items():
        yield _text(model, name, **changes)


_TEXT_OPTIONS: Mapping[str, dict[str, Any]] = {
    "logprobs": {"logprobs": 2},
    "logprobs, stream": {"logprobs": 2, **_STREAM},
    "0 logprobs": {"logprobs": 0},
    "9 logprobs": {"logprobs": 9},
    "prompt_logprobs": {"prompt_logprobs": 1},
    "echo": {"echo": True},
    "echo, stream": {"echo": True, **_STREAM},
    "suffix": {"suffix": "end"},
}


def _of_bodies(model: str) -> Iterator[Case]:
    """Yield what is no request, and other paths."""
    for path in (_CHAT, _TEXT):
        for name, body in {"cut": b"{", "list": b"[]", "empty": b"", "not UTF-8": b"\xff\xfe"}.items():
            yield Case(f"{path}, body: {name}", path, body)
        yield Case(f"{path}, GET", path, None)
    answer = {"model": model, "input": "Hello", "max_output_tokens": 8, "temperature": 0}
    yield Case("responses", "/v1/responses", answer)
    yield Case("responses, stream", "/v1/responses", {**answer, "stream": True})
    yield Case("embeddings", "/v1/embeddings", {"model": model, "input": "x"})
    for path in ("/v1/models", "/live", "/v1/nothing", "/tokenize", "/version"):
        yield Case(path, path, None)


def cache_cases(model: str) -> Iterator[Case]:
    """Yield prompts that are repeated as a whole and in part, for a deployment with one worker of a role."""
    for tokens in (63, 64, 65, 127, 128, 129, 640, 1000):
        for turn in ("first", "again"):
            prompt = random_text(tokens, seed=1000 + tokens)
            yield _text(model, f"cache: {tokens} tokens, {turn}", prompt=prompt, max_tokens=1)
    whole = random_text(1000, seed=77)
    yield _text(model, "cache: 1000 tokens that others share", prompt=whole, max_tokens=1)
    words = whole.split(" ")
    for kept in (63, 64, 100, 128, 500, 999):
        shared = " ".join(words[:kept]) + " " + random_text(300, seed=kept).lstrip()
        yield _text(model, f"cache: {kept} shared tokens", prompt=shared, max_tokens=1)
    question = {"role": "user", "content": random_text(700, seed=9)}
    turns = [question, {"role": "assistant", "content": "yes"}, {"role": "user", "content": "more"}]
    for name, messages in {"first": [question], "again": [question], "next turn": turns}.items():
        yield _chat(model, f"cache: dialogue, {name}", messages=messages, max_tokens=1)
