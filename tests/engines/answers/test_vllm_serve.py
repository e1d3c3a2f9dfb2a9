"""Answers of real `vllm serve`, as in llm-d, with the catalogue's parsers: what a client gets of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

import openai
import pytest

import inference_catalog as catalog
from tests.engines.answers import checks
from tests.engines.answers.answer_tests import COUNTING, AnswerTests
from tests.engines.answers.scripted_weights import write_counting_model, write_scripted_model
from tests.engines.answers.scripts import SCRIPTS
from tests.engines.answers.serving import serving
from tests.local.serving.answers.answer_families import Family

pytestmark = [pytest.mark.engines, pytest.mark.timeout(3600), pytest.mark.xdist_group("engines")]


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


#: A family, and a model of it that writes marks letter by letter where a grammar demands them.
_SPELLED, _SPELLING = "glm-5", "glm-5-spelling"
#: vLLM with a parser of reasoning takes words without a mark as reasoning, so the counting model has none.
_TOOL_CALLS = ["--tool-call-parser", "hermes", "--enable-auto-tool-choice"]


@pytest.fixture(scope="module")
def clients(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, openai.OpenAI]]:
    folder: Path = tmp_path_factory.mktemp("answers")
    for name, family in _SERVED.items():
        write_scripted_model(family.entry, folder / name, family.text)
    write_counting_model("Qwen/Qwen3-8B", folder / COUNTING)
    spelled = _SERVED[_SPELLED]
    write_scripted_model(spelled.entry, folder / _SPELLING, spelled.text, spells_marks=True)
    parsers = {name: _parsers(name) for name in _SERVED} | {COUNTING: _TOOL_CALLS}
    parsers[_SPELLING] = _parsers(_SPELLED)
    with serving(folder, parsers) as opened:
        yield opened


class TestVllmServe(AnswerTests):
    """`vllm serve` with the catalogue's parsers."""

    families: ClassVar[Mapping[str, Family]] = _SERVED
    # Without mistral, which writes calls until max_tokens, and qwen3-coder, whose named calls end otherwise.
    callers: ClassVar[Sequence[str]] = (
        *(COUNTING, "qwen3", "kimi-k2", "kimi-k2-5", "llama3", "minimax-m2", "glm-5"),
    )
    forced_finish: ClassVar[Mapping[str, str]] = {"required": "tool_calls", "named": "stop"}

    def test_a_stream_loses_a_forced_call_whose_marks_are_spelled(
        self, clients: dict[str, openai.OpenAI]
    ) -> None:
        """A forced call whose marks are spelled letter by letter is a call, but only text in a stream."""
        checks.loses_a_spelled_call_in_a_stream(clients[_SPELLING], _SPELLING)
