"""The official client against the endpoint: what works on AWS works here."""

import asyncio
import http.client
import json
import re
import time
import urllib.request
from collections.abc import Callable
from typing import Any, cast
from urllib.parse import urlsplit

import jsonschema
import openai
import pytest
from openai.types.chat import ChatCompletionMessageParam

from inference_blueprints.measure.tokenizer import one_token_words, random_text
from inference_blueprints.serving.traffic import own_means
from inference_blueprints.spec.types import Blueprint
from inference_local.serving.local_endpoint import LocalEndpoint
from tests.local.serving.conftest import Served

_MODEL = "qwen3-8b"
_IN_FLIGHT = r"dynamo_frontend_inflight_requests\{"
#: How often a worker told a frontend what it keeps.
_STORED = r'dynamo_component_kv_cache_events_applied\{.*event_type="stored",status="ok"'


def _sums(endpoint: LocalEndpoint, series: str) -> list[float]:
    """Return the sum of some series of each frontend."""
    pages = [urllib.request.urlopen(url, timeout=240).read().decode() for url in endpoint.metrics_urls]  # noqa: S310 - of this machine
    return [
        sum(float(line.split()[-1]) for line in page.splitlines() if re.match(series, line)) for page in pages
    ]


def _in_flight(endpoint: LocalEndpoint) -> float:
    """Return how many requests the frontends are answering."""
    return sum(_sums(endpoint, _IN_FLIGHT))


def _wait(happened: Callable[[], bool], otherwise: str) -> None:
    deadline = time.monotonic() + 240
    while not happened():
        assert time.monotonic() < deadline, otherwise
        time.sleep(0.05)


def _ask(text: str) -> list[ChatCompletionMessageParam]:
    return [{"role": "user", "content": text}]


def test_the_model_is_listed_with_the_context_of_the_plan(served: Served) -> None:
    (model,) = served.client.models.list().data
    assert model.id == _MODEL
    assert model.model_extra is not None
    assert model.model_extra["context_window"] == served.endpoint.context_length


def test_a_chat_answers_in_readable_words_of_the_asked_length(client: openai.OpenAI) -> None:
    answer = client.chat.completions.create(model=_MODEL, messages=_ask("Hello"), max_tokens=12)
    assert answer.usage is not None
    assert answer.usage.completion_tokens == 12
    assert answer.choices[0].finish_reason == "length"
    said = (answer.choices[0].message.content or "").split()
    assert len(said) == 12
    assert set(said) <= set(one_token_words())


def test_a_stream_brings_every_token_and_the_usage(client: openai.OpenAI) -> None:
    stream = client.chat.completions.create(
        model=_MODEL,
        messages=_ask("Hello"),
        max_tokens=7,
        stream=True,
        stream_options={"include_usage": True},
    )
    chunks = list(stream)
    said = "".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices)
    assert len(said.split()) == 7
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.completion_tokens == 7


@pytest.mark.parametrize("tokens", [1, 63, 64, 65, 2000])
def test_text_has_exactly_the_length_that_it_was_made_for(client: openai.OpenAI, tokens: int) -> None:
    answer = client.completions.create(model=_MODEL, prompt=random_text(tokens, seed=tokens), max_tokens=1)
    assert answer.usage is not None
    assert answer.usage.prompt_tokens == tokens


@pytest.mark.parametrize(
    "text", ["Grüße, 你好 🎉", "tabs\tand\nlines", "naïve  café ﬁ", "<|im_end|>", "\u0000"]
)
def test_any_text_can_be_asked(client: openai.OpenAI, text: str) -> None:
    answer = client.chat.completions.create(model=_MODEL, messages=_ask(text), max_tokens=2)
    assert answer.usage is not None
    assert answer.usage.completion_tokens == 2


def test_the_chat_template_adds_the_same_to_every_question(client: openai.OpenAI) -> None:
    def prompt_tokens(tokens: int) -> int:
        question = _ask(random_text(tokens, seed=5))
        usage = client.chat.completions.create(model=_MODEL, messages=question, max_tokens=1).usage
        assert usage is not None
        return usage.prompt_tokens

    assert prompt_tokens(300) - prompt_tokens(100) == 200


def test_a_repeated_prompt_is_found_in_the_kv_cache_of_its_worker(served: Served) -> None:
    def cached(prompt: str) -> int:
        usage = served.client.completions.create(model=_MODEL, prompt=prompt, max_tokens=1).usage
        assert usage is not None
        assert usage.prompt_tokens_details is not None
        tokens = usage.prompt_tokens_details.cached_tokens
        assert tokens is not None
        return tokens

    prompt = random_text(640, seed=99)
    known = max(_sums(served.endpoint, _STORED))
    assert cached(prompt) == 0
    # Its worker tells both frontends what it keeps. One that does not know it sends some of six elsewhere.
    _wait(lambda: min(_sums(served.endpoint, _STORED)) > known, "the frontends do not learn of the prefix")
    assert min(cached(prompt) for _ in range(6)) >= 512


def test_without_max_tokens_an_answer_has_the_workloads_length(
    client: openai.OpenAI, quickstart: Blueprint
) -> None:
    expected = own_means(quickstart.spec.models[0]).output_tokens
    stream = client.chat.completions.create(
        model=_MODEL, messages=_ask("Hello"), stream=True, stream_options={"include_usage": True}
    )
    chunks = list(stream)
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.completion_tokens == expected


def test_many_streams_of_the_asynchronous_client_bring_every_token(served: Served) -> None:
    async def length(client: openai.AsyncOpenAI, tokens: int) -> int:
        stream = await client.chat.completions.create(
            model=_MODEL, messages=_ask("Hello"), max_tokens=tokens, stream=True
        )
        return len("".join([chunk.choices[0].delta.content or "" async for chunk in stream]).split())

    async def lengths(asked: list[int]) -> list[int]:
        async with openai.AsyncOpenAI(
            base_url=served.endpoint.base_url, api_key="none", max_retries=0
        ) as client:
            return await asyncio.gather(*(length(client, tokens) for tokens in asked))

    asked = list(range(5, 25))
    assert asyncio.run(lengths(asked)) == asked


def test_a_stream_that_is_dropped_ends_at_the_frontend(served: Served) -> None:
    stream = served.client.completions.create(model=_MODEL, prompt="Hello", max_tokens=2000, stream=True)
    next(iter(stream))
    assert _in_flight(served.endpoint) == 1
    stream.close()
    _wait(lambda: not _in_flight(served.endpoint), "the frontend goes on")


def test_the_frontend_and_not_the_relay_says_what_is_too_large(served: Served) -> None:
    with pytest.raises(openai.APIStatusError) as caught:
        served.client.completions.create(model=_MODEL, prompt="x" * 50_000_000, max_tokens=1)
    assert caught.value.status_code == http.client.REQUEST_ENTITY_TOO_LARGE


def test_an_unknown_model_is_not_found(client: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError, match="Model not found"):
        client.chat.completions.create(model="nobody", messages=_ask("Hello"), max_tokens=1)


def test_errors_have_openais_codes(client: openai.OpenAI) -> None:
    """Red if the filter before the frontend does not know its errors any more."""
    with pytest.raises(openai.NotFoundError) as unknown:
        client.chat.completions.create(model="nobody", messages=_ask("Hello"), max_tokens=1)
    with pytest.raises(openai.BadRequestError) as long:
        client.chat.completions.create(model=_MODEL, messages=_ask("word " * 300_000), max_tokens=1)
    assert (unknown.value.code, long.value.code) == ("model_not_found", "context_length_exceeded")


@pytest.mark.parametrize(
    "request_", [{"temperature": 9}, {"max_tokens": -1}, {"messages": "not a list"}, {"n": 0}]
)
def test_a_bad_request_is_refused_with_what_is_wrong(client: openai.OpenAI, request_: dict[str, Any]) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        client.chat.completions.create(
            **cast("Any", {"model": _MODEL, "messages": _ask("Hello"), "max_tokens": 1, **request_})
        )
    assert caught.value.body


def test_what_is_no_json_is_refused(served: Served) -> None:
    address = urlsplit(served.endpoint.base_url)
    assert address.hostname is not None
    connection = http.client.HTTPConnection(address.hostname, address.port, timeout=240)
    connection.request("POST", "/v1/chat/completions", b"{", {"Content-Type": "application/json"})
    answer = connection.getresponse()
    assert answer.status == http.client.BAD_REQUEST
    assert json.loads(answer.read())["error"]["message"]
    connection.close()


_PLACE = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "degrees": {"type": "integer"}},
    "required": ["city", "degrees"],
    "additionalProperties": False,
}
_TOOLS: Any = [{"type": "function", "function": {"name": "measure", "parameters": _PLACE}}]
_NAMED = {"type": "function", "function": {"name": "measure"}}
_SCHEMA = {"type": "json_schema", "json_schema": {"name": "place", "schema": _PLACE, "strict": True}}


def _demand(client: openai.OpenAI, **fields: Any) -> Any:
    asked: Any = {"model": _MODEL, "messages": _ask("Weather?"), "max_tokens": 60, **fields}
    if not fields.get("stream"):
        return client.chat.completions.create(**asked)
    with client.chat.completions.stream(
        **{name: asked[name] for name in asked if name != "stream"}
    ) as stream:
        return stream.get_final_completion()


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("choice", ["required", _NAMED])
def test_a_tool_that_must_be_called_is_called(client: openai.OpenAI, choice: Any, *, stream: bool) -> None:
    """The frontend reads the call out of what the engine wrote. Of words, it makes neither call nor text."""
    [answer] = _demand(client, tools=_TOOLS, tool_choice=choice, stream=stream).choices
    [call] = answer.message.tool_calls
    jsonschema.validate(json.loads(call.function.arguments), _PLACE)
    assert (call.function.name, answer.finish_reason) == ("measure", "tool_calls")


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("wanted", "schema"), [(_SCHEMA, _PLACE), ({"type": "json_object"}, {"type": "object"})]
)
def test_complete_json_ends_with_stop(
    client: openai.OpenAI, wanted: Any, schema: Any, *, stream: bool
) -> None:
    """An answer with `length` is an error in the clients' helpers (`LengthFinishReasonError`)."""
    answer = _demand(client, response_format=wanted, stream=stream)
    [choice] = answer.choices
    jsonschema.validate(json.loads(choice.message.content), schema)
    assert (choice.finish_reason, answer.model) == ("stop", _MODEL)


def test_json_that_max_tokens_cuts_ends_with_length(client: openai.OpenAI) -> None:
    answer = _demand(client, response_format=_SCHEMA, max_tokens=3)
    [choice] = answer.choices
    assert (choice.finish_reason, answer.usage.completion_tokens) == ("length", 3)
    assert choice.message.content.startswith("{")


def test_every_choice_is_answered(client: openai.OpenAI) -> None:
    answer = _demand(client, n=3, max_tokens=5)
    assert [choice.index for choice in answer.choices] == [0, 1, 2]
    assert [len(choice.message.content.split()) for choice in answer.choices] == [5, 5, 5]
    assert {choice.finish_reason for choice in answer.choices} == {"length"}
    assert len({choice.message.content for choice in answer.choices}) == 3


def test_every_choice_of_a_stream_is_answered(client: openai.OpenAI) -> None:
    """The client's helper needs the first pieces in the order of the choices."""
    answer = _demand(client, n=3, response_format=_SCHEMA, stream=True)
    assert [choice.index for choice in answer.choices] == [0, 1, 2]
    for choice in answer.choices:
        jsonschema.validate(json.loads(choice.message.content), _PLACE)


def test_a_structure_that_the_simulated_engine_cannot_write_is_refused(client: openai.OpenAI) -> None:
    """Random words in its place would look like a broken client."""
    schema = {"type": "string", "pattern": "^a+$"}
    wanted = {"type": "json_schema", "json_schema": {"name": "a", "schema": schema}}
    with pytest.raises(openai.BadRequestError, match="makes no value for 'pattern'"):
        _demand(client, response_format=wanted)


def test_only_the_models_own_name_is_listed_and_answers_carry_it(served: Served) -> None:
    assert [model.id for model in served.client.models.list().data] == [_MODEL]
    assert _demand(served.client, n=2, max_tokens=1).model == _MODEL


def test_a_prompt_beyond_the_context_is_refused_and_serving_goes_on(served: Served) -> None:
    too_long = random_text(served.endpoint.context_length + 1, seed=1)
    with pytest.raises(openai.BadRequestError):
        served.client.completions.create(model=_MODEL, prompt=too_long, max_tokens=1)
    with pytest.raises(openai.BadRequestError):
        served.client.completions.create(model=_MODEL, prompt=too_long, max_tokens=1, stream=True)
    assert served.client.completions.create(model=_MODEL, prompt="still here", max_tokens=1).choices


def test_an_answer_that_would_pass_the_context_is_refused(served: Served) -> None:
    prompt = random_text(served.endpoint.context_length - 3, seed=1)
    usage = served.client.completions.create(model=_MODEL, prompt=prompt, max_tokens=3).usage
    assert usage is not None
    assert usage.total_tokens == served.endpoint.context_length
    with pytest.raises(openai.BadRequestError):
        served.client.completions.create(model=_MODEL, prompt=prompt, max_tokens=4)
