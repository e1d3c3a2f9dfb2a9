"""Answers of real `vllm serve`, as in llm-d, with the catalogue's parsers: what a client gets of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
import pytest

from inference_blueprints import catalog
from tests.engines.answers import checks
from tests.engines.answers.scripted_weights import write_counting_model, write_scripted_model
from tests.engines.answers.scripts import SCRIPTS
from tests.engines.answers.serving import serving

pytestmark = [pytest.mark.engines, pytest.mark.timeout(3600), pytest.mark.xdist_group("engines")]

_COUNTING = "counting"


def _parsers(name: str) -> list[str]:
    """Return the arguments for the parsers that the catalogue names for `vllm serve`."""
    model = catalog.model(SCRIPTS[name].entry)
    parsers = catalog.answer_formats()[str(model.answer_format)].parsers["vllm"]
    reasoning = ["--reasoning-parser", parsers.reasoning] if parsers.reasoning else []
    calls = ["--tool-call-parser", parsers.tool_call] if parsers.tool_call else []
    return [*reasoning, *calls, *(["--enable-auto-tool-choice"] if calls else [])]


#: Families whose answers vLLM's own parsers can separate completely.
_SERVED = {
    name: family
    for name, family in SCRIPTS.items()
    if (not family.calls or "--tool-call-parser" in _parsers(name))
    and (not family.reasoning or "--reasoning-parser" in _parsers(name))
}


@pytest.fixture(scope="module")
def clients(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, openai.OpenAI]]:
    folder: Path = tmp_path_factory.mktemp("answers")
    for name, family in _SERVED.items():
        write_scripted_model(family.entry, folder / name, family.text)
    write_counting_model("Qwen/Qwen3-8B", folder / _COUNTING)
    with serving(folder, {name: _parsers(name) for name in _SERVED} | {_COUNTING: []}) as opened:
        yield opened


@pytest.mark.parametrize("name", _SERVED)
def test_reasoning_and_tool_calls_are_separated(clients: dict[str, openai.OpenAI], name: str) -> None:
    """Reasoning, text and tool calls of an answer are apart, and its finish reason is theirs."""
    checks.separated(clients[name], name, _SERVED[name])


@pytest.mark.parametrize("name", _SERVED)
def test_reasoning_and_tool_calls_are_separated_in_a_stream(
    clients: dict[str, openai.OpenAI], name: str
) -> None:
    """Reasoning, text and tool calls of a stream are apart, and its finish reason is theirs."""
    checks.separated_in_a_stream(clients[name], name, _SERVED[name])


def test_a_client_sees_every_token_once(clients: dict[str, openai.OpenAI]) -> None:
    """A client sees every token of a stream once, and the usage counts them."""
    checks.counted(clients[_COUNTING], _COUNTING, 300)


def test_a_json_schema_is_kept(clients: dict[str, openai.OpenAI]) -> None:
    """An answer matches the JSON Schema of its request."""
    checks.keeps_a_schema(clients[_COUNTING], _COUNTING)


@pytest.mark.parametrize(("status", "wrong"), checks.WRONG)
def test_a_wrong_request_is_refused(
    clients: dict[str, openai.OpenAI], status: int, wrong: dict[str, Any]
) -> None:
    """A prompt that is too long, an unknown model and wrong fields get 400 or 404."""
    checks.refused(clients[_COUNTING], _COUNTING, status, wrong)


def test_malformed_json_is_refused(clients: dict[str, openai.OpenAI]) -> None:
    """A body that is not JSON gets 400."""
    checks.refuses_malformed_json(clients[_COUNTING])
