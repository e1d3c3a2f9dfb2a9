"""Checks of a model's `chat`: what writes its prompts reads it, and the model has a switch for thinking."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

import inference_catalog as catalog
from inference_blueprints.spec.types import Chat, Model
from inference_blueprints.spec.wording import quote
from inference_catalog.engine import Thinking
from inference_contracts.errors import Finding

#: Engine arguments and variables that say the same, by key of `chat`.
_SAME: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "thinking": (
            "dyn-default-thinking-mode",
            "default-chat-template-kwargs",
            "chat-template-kwargs",
            "reasoning",
            "DYN_DEFAULT_THINKING_MODE",
            "LLAMA_ARG_REASONING",
            "LLAMA_CHAT_TEMPLATE_KWARGS",
        ),
        "template": (
            "custom-jinja-template",
            "chat-template",
            "chat-template-file",
            "DYN_CUSTOM_JINJA_TEMPLATE",
            "LLAMA_ARG_CHAT_TEMPLATE",
            "LLAMA_ARG_CHAT_TEMPLATE_FILE",
        ),
    }
)
#: Arguments of Dynamo's workers by which the engine, and not Dynamo's frontend, writes prompts
#: (``dynamo/vllm/backend_args.py`` and ``dynamo/sglang/backend_args.py`` of ai-dynamo 1.6.1).
_ENGINE_WRITES = ("use-vllm-tokenizer", "use-sglang-tokenizer")
_NO_SWITCH: Mapping[Thinking, str] = MappingProxyType(
    {
        "always": "always thinks, and its template has no switch for it; remove it, or give a 'template' "
        "that has one; how long it thinks, a request may say with 'reasoning_effort' if the model can",
        "never": "does not think, so it has no effect; remove it",
        "effort": "thinks only as much as a request says with 'reasoning_effort' in 'chat_template_kwargs', "
        "so it has no effect; remove it, or give a 'template' that has a switch",
    }
)


def chat_findings(model: Model, model_path: tuple[str | int, ...]) -> Iterator[Finding]:
    """Check a model's section `chat`.

    model_path: Path of the model in the blueprint.
    Yields: An error for each key that has no effect, or that an engine argument or a variable also sets.
    """
    chat = model.chat
    if chat is None or model.task != "generate":
        return
    path = (*model_path, "chat")
    given = [name for name in ("thinking", "template") if getattr(chat, name) is not None]
    if not given:
        yield Finding(path, "got nothing, expected 'thinking', 'template' or both")
        return
    engine = model.engine
    also = {**engine.arguments, **engine.section.env}
    for name in given:
        for other in _SAME[name]:
            if other in also:
                yield Finding((*path, name), f"'{other}' of the engine says the same; remove one of them")
    for switch in _ENGINE_WRITES:
        if model.stack.dynamo and engine.arguments.get(switch):
            message = (
                f"Dynamo's frontend reads it, and with '{switch}' the engine writes prompts instead; remove "
                "one of them"
            )
            yield Finding(path, message)
    yield from _switch_findings(model, chat, (*path, "thinking"))


def _switch_findings(model: Model, chat: Chat, path: tuple[str | int, ...]) -> Iterator[Finding]:
    """Check that the model's own template has a switch for thinking. Another one may have it."""
    entry = model.weights.entry
    if chat.thinking is None or chat.template is not None or entry is None or entry.answer_format is None:
        return
    kind = catalog.answer_formats()[entry.answer_format].thinking
    if kind == "always" and chat.thinking:
        return
    if kind != "switch":
        given = str(chat.thinking).lower()
        yield Finding(path, f"got {given}, but {quote(entry.name)} {_NO_SWITCH[kind]}")
