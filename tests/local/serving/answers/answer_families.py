"""What models of each family write, and what a client should get of it.

Marks are single tokens of each family's tokenizer. Their text is that of its chat template and of the
examples in its model card; harmony's is that of the OpenAI cookbook, "OpenAI harmony response format".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

CALL = ("get_weather", {"city": "Paris"})


@dataclass(frozen=True)
class Family:
    """What a model writes, and what a client should get of it.

    ``parsers`` is the blueprint's section; empty for the parsers of the catalogue's entry. ``special`` says
    whether the family's tokenizer has its marks as special tokens, which a plain decoder leaves out.
    """

    entry: str
    marks: tuple[str, ...]
    text: str
    content: str
    reasoning: str
    calls: tuple[tuple[str, dict[str, str]], ...]
    parsers: Mapping[str, str] = field(default_factory=dict)
    special: bool = False


_DEEPSEEK_CALL = ("<｜tool▁calls▁begin｜>", "<｜tool▁call▁begin｜>", "<｜tool▁sep｜>")  # noqa: RUF001
_DEEPSEEK_END = ("<｜tool▁call▁end｜>", "<｜tool▁calls▁end｜>")  # noqa: RUF001

FAMILIES = {
    "qwen3": Family(
        "Qwen/Qwen3-8B",
        ("<think>", "</think>", "<tool_call>", "</tool_call>"),
        "<think>\nParis, then.\n</think>\n\nI look it up.\n<tool_call>\n"
        '{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call>',
        "I look it up.",
        "Paris, then.",
        (CALL,),
    ),
    "qwen3-coder": Family(
        "Qwen/Qwen3-Coder-480B-A35B-Instruct",
        ("<tool_call>", "</tool_call>"),
        "I look it up.\n<tool_call>\n<function=get_weather>\n<parameter=city>\nParis\n</parameter>\n"
        "</function>\n</tool_call>",
        "I look it up.",
        "",
        (CALL,),
    ),
    "kimi-k2": Family(
        "moonshotai/Kimi-K2-Instruct",
        (
            "<|tool_calls_section_begin|>",
            "<|tool_call_begin|>",
            "<|tool_call_argument_begin|>",
            "<|tool_call_end|>",
            "<|tool_calls_section_end|>",
        ),
        "I look it up.<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0"
        '<|tool_call_argument_begin|>{"city": "Paris"}<|tool_call_end|><|tool_calls_section_end|>',
        "I look it up.",
        "",
        (CALL,),
    ),
    "llama3": Family(
        "meta-llama/Llama-3.1-8B-Instruct",
        (),
        '{"name": "get_weather", "parameters": {"city": "Paris"}}',
        "",
        "",
        (CALL,),
    ),
    "llama4": Family(
        "meta-llama/Llama-3.1-8B-Instruct",
        (),
        '[get_weather(city="Paris")]',
        "",
        "",
        (CALL,),
        parsers={"toolCall": "pythonic"},
    ),
    "mistral": Family(
        "mistralai/Mistral-Nemo-Instruct-2407",
        ("[TOOL_CALLS]",),
        '[TOOL_CALLS][{"name": "get_weather", "arguments": {"city": "Paris"}, "id": "abcdefghi"}]',
        "",
        "",
        (CALL,),
    ),
    "deepseek-r1": Family(
        "deepseek-ai/DeepSeek-R1",
        ("<think>", "</think>"),
        # The prompt ends with the opening mark.
        "Paris, then.\n</think>\n\nIt is mild.",
        "It is mild.",
        "Paris, then.",
        (),
    ),
    "deepseek-v3": Family(
        "deepseek-ai/DeepSeek-V3",
        (*_DEEPSEEK_CALL, *_DEEPSEEK_END),
        "I look it up."
        + _DEEPSEEK_CALL[0]
        + _DEEPSEEK_CALL[1]
        + "function"
        + _DEEPSEEK_CALL[2]
        + 'get_weather\n```json\n{"city": "Paris"}\n```'
        + "".join(_DEEPSEEK_END),
        "I look it up.",
        "",
        (CALL,),
    ),
    "deepseek-v3.1": Family(
        "deepseek-ai/DeepSeek-V3",
        (*_DEEPSEEK_CALL, *_DEEPSEEK_END),
        "I look it up."
        + _DEEPSEEK_CALL[0]
        + _DEEPSEEK_CALL[1]
        + "get_weather"
        + _DEEPSEEK_CALL[2]
        + '{"city": "Paris"}'
        + "".join(_DEEPSEEK_END),
        "I look it up.",
        "",
        (CALL,),
        parsers={"toolCall": "deepseek_v3_1"},
    ),
    "harmony": Family(
        "openai/gpt-oss-20b",
        ("<|start|>", "<|channel|>", "<|constrain|>", "<|message|>", "<|end|>", "<|call|>"),
        "<|channel|>analysis<|message|>Paris, then.<|end|><|start|>assistant<|channel|>commentary"
        " to=functions.get_weather <|constrain|>json<|message|>"
        '{"city": "Paris"}<|call|>',
        "",
        "Paris, then.",
        (CALL,),
        special=True,
    ),
    "harmony-answer": Family(
        "openai/gpt-oss-20b",
        ("<|start|>", "<|channel|>", "<|message|>", "<|end|>", "<|return|>"),
        "<|channel|>analysis<|message|>Paris, then.<|end|><|start|>assistant<|channel|>final<|message|>"
        "It is mild.<|return|>",
        "It is mild.",
        "Paris, then.",
        (),
        special=True,
    ),
}
