"""Tests of answers that hold for every server of scripted and counting models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import openai
import pytest

from tests.engines.answers import checks
from tests.local.serving.answers.answer_families import Family

#: The model whose weights count through the words of its tokenizer.
COUNTING = "counting"


class AnswerTests:
    """A server's class of tests names its families. Its module has a fixture ``clients``."""

    families: ClassVar[Mapping[str, Family]]
    #: Models whose weights can be forced to call a tool.
    callers: ClassVar[Sequence[str]]
    #: The finish reason of an answer whose tool is forced, by how it is forced.
    forced_finish: ClassVar[Mapping[str, str]]

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        if "family" in metafunc.fixturenames:
            metafunc.parametrize("family", self.families)
        if "caller" in metafunc.fixturenames:
            metafunc.parametrize("caller", self.callers)

    def test_reasoning_and_tool_calls_are_separated(
        self, clients: dict[str, openai.OpenAI], family: str
    ) -> None:
        """Reasoning, text and tool calls of an answer are apart, and its finish reason is theirs."""
        checks.separated(clients[family], family, self.families[family])

    def test_reasoning_and_tool_calls_are_separated_in_a_stream(
        self, clients: dict[str, openai.OpenAI], family: str
    ) -> None:
        """Reasoning, text and tool calls of a stream are apart, and its finish reason is theirs."""
        checks.separated_in_a_stream(clients[family], family, self.families[family])

    def test_a_client_sees_every_token_once(self, clients: dict[str, openai.OpenAI]) -> None:
        """A client sees every token of a stream once, and the usage counts them."""
        checks.counted(clients[COUNTING], COUNTING, 300)

    def test_a_json_schema_is_kept(self, clients: dict[str, openai.OpenAI]) -> None:
        """An answer matches the JSON Schema of its request."""
        checks.keeps_a_schema(clients[COUNTING], COUNTING)

    @pytest.mark.parametrize("forced", checks.FORCED)
    def test_a_forced_tool_is_called(
        self, clients: dict[str, openai.OpenAI], caller: str, forced: str
    ) -> None:
        """A required or named tool is called with arguments of its schema, which the weights do not write."""
        checks.calls_a_forced_tool(clients[caller], caller, forced, self.forced_finish[forced])

    @pytest.mark.parametrize("forced", checks.FORCED)
    def test_a_forced_tool_is_called_in_a_stream(
        self, clients: dict[str, openai.OpenAI], caller: str, forced: str
    ) -> None:
        """A required or named tool is called in a stream as well."""
        checks.calls_a_forced_tool_in_a_stream(clients[caller], caller, forced, self.forced_finish[forced])

    def test_a_forced_call_that_is_cut_is_marked(self, clients: dict[str, openai.OpenAI]) -> None:
        """A forced call that `max_tokens` cuts ends with the finish reason `length`."""
        checks.marks_a_call_that_is_cut(clients[COUNTING], COUNTING)

    @pytest.mark.parametrize(("status", "wrong"), checks.WRONG)
    def test_a_wrong_request_is_refused(
        self, clients: dict[str, openai.OpenAI], status: int, wrong: dict[str, Any]
    ) -> None:
        """A prompt that is too long, an unknown model and wrong fields get 400 or 404."""
        checks.refused(clients[COUNTING], COUNTING, status, wrong)

    def test_malformed_json_is_refused(self, clients: dict[str, openai.OpenAI]) -> None:
        """A body that is not JSON gets 400."""
        checks.refuses_malformed_json(clients[COUNTING])
