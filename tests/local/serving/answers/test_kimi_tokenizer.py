"""Kimi-K2 ships its tokenizer as ``tiktoken.model`` with Python code, which the platform never runs.

Dynamo's frontend reads that file itself (``lib/tokenizers/src/tiktoken.rs`` of ai-dynamo/dynamo).
"""

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
import pytest
from openai.types.chat import ChatCompletionFunctionToolParam, ChatCompletionMessageFunctionToolCall

import inference_catalog as catalog
from inference_blueprints.measure.tokenizer import write_model_directory
from tests.local.serving.answers.answer_families import FAMILIES, Family
from tests.local.serving.answers.answering import answering
from tests.local.serving.answers.scripted_models import ECHO, planned_arguments

_FAMILY = FAMILIES["kimi-k2"]
# Each byte, and one word, as in the repository's file: base64 of the token, and its number.
_WORD = "Weather"
_TOKENS = [bytes([byte]) for byte in range(256)] + [_WORD.encode()[:2], _WORD.encode()]


def kimi_directory(family: Family, directory: Path) -> Path:
    """Write a model's directory with the tokenizer files of moonshotai/Kimi-K2-Instruct."""
    write_model_directory(catalog.model(family.entry), directory)
    (directory / "tokenizer.json").unlink()
    lines = [f"{base64.b64encode(token).decode()} {rank}\n" for rank, token in enumerate(_TOKENS)]
    (directory / "tiktoken.model").write_text("".join(lines), encoding="utf-8")
    special = [*family.marks, "[BOS]", "[EOS]", "<|im_end|>", "<|im_user|>"]
    plain = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    added = {
        str(len(_TOKENS) + index): {"content": mark, "special": mark not in family.marks, **plain}
        for index, mark in enumerate(special)
    }
    settings = directory / "tokenizer_config.json"
    found = json.loads(settings.read_text(encoding="utf-8"))
    found |= {
        "added_tokens_decoder": added,
        "tokenizer_class": "TikTokenTokenizer",
        "auto_map": {"AutoTokenizer": ["tokenization_kimi.TikTokenTokenizer", None]},
    }
    settings.write_text(json.dumps(found), encoding="utf-8")
    path = directory / "config.json"
    configuration = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(configuration | {"model_type": "kimi_k2"}), encoding="utf-8")
    return directory


def tokens_of(family: Family) -> list[int]:
    tokens: list[int] = []
    rest = family.text
    marks = {mark: len(_TOKENS) + index for index, mark in enumerate(family.marks)}
    while rest:
        mark = next((each for each in marks if rest.startswith(each)), None)
        tokens += [marks[mark]] if mark else rest[0].encode()
        rest = rest[len(mark or rest[0]) :]
    return tokens


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[openai.OpenAI]:
    folder: Path = tmp_path_factory.mktemp("kimi")
    directory = str(kimi_directory(_FAMILY, folder / "model"))
    entry: dict[str, Any] = {"directory": directory, "arguments": planned_arguments(_FAMILY)}
    script = [
        entry | {"name": "kimi-k2", "tokens": tokens_of(_FAMILY)},
        entry | {"name": ECHO, "arguments": [], "tokens": [], "first_byte": 0},
    ]
    with (
        answering(script, _FAMILY, folder, {}) as address,
        openai.OpenAI(base_url=address, api_key="none", max_retries=0) as opened,
    ):
        yield opened


def test_answers_are_read_with_the_models_own_tokens(client: openai.OpenAI) -> None:
    tool: ChatCompletionFunctionToolParam = {
        "type": "function",
        "function": {"name": "get_weather", "parameters": {"type": "object"}},
    }
    [choice] = client.chat.completions.create(
        model="kimi-k2",
        messages=[{"role": "user", "content": "Weather in Paris?"}],
        tools=[tool],
        max_tokens=900,
    ).choices
    assert choice.message.content == _FAMILY.content
    [call] = choice.message.tool_calls or []
    assert isinstance(call, ChatCompletionMessageFunctionToolCall)
    assert (call.function.name, json.loads(call.function.arguments)) == _FAMILY.calls[0]


def test_prompts_are_written_in_the_models_own_tokens(client: openai.OpenAI) -> None:
    [choice] = client.chat.completions.create(
        model=ECHO, messages=[{"role": "user", "content": _WORD}], max_tokens=900
    ).choices
    prompt = json.loads(choice.message.content or "")["token_ids"]
    assert len(_TOKENS) - 1 in prompt
    assert ord(_WORD[0]) not in prompt
