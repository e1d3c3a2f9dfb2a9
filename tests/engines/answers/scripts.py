"""What scripted models write in each family's format, and what a client should get of it."""

from __future__ import annotations

from tests.local.serving.answers.answer_families import CALL, FAMILIES, Family

_MARKS = ("<think>", "</think>")
#: Not harmony, which has marks several times in an answer: a script has one successor for each token.
_LEFT_OUT = {"harmony", "harmony-answer", "llama4"}
SCRIPTS = {
    **{name: family for name, family in FAMILIES.items() if name not in _LEFT_OUT},
    "glm-5": Family(
        "zai-org/GLM-5-FP8",
        _MARKS,
        "Paris, then.</think>I look it up.<tool_call>get_weather<arg_key>city</arg_key>"
        "<arg_value>Paris</arg_value></tool_call>",
        "I look it up.",
        "Paris, then.",
        (CALL,),
    ),
    "minimax-m2": Family(
        "MiniMaxAI/MiniMax-M2.5",
        _MARKS,
        'Paris, then.\n</think>\n\nI look it up.\n<minimax:tool_call>\n<invoke name="get_weather">\n'
        '<parameter name="city">Paris</parameter>\n</invoke>\n</minimax:tool_call>',
        "I look it up.",
        "Paris, then.",
        (CALL,),
    ),
    "kimi-k2-5": Family(
        "moonshotai/Kimi-K2.5",
        _MARKS,
        "Paris, then.</think>" + FAMILIES["kimi-k2"].text,
        "I look it up.",
        "Paris, then.",
        (CALL,),
    ),
}
