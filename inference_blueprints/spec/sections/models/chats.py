"""Chat templates that models name, which are files beside the blueprint."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from inference_blueprints.spec.invalid_values import usable
from inference_blueprints.spec.types import Chat, Spec
from inference_blueprints.spec.wording import Path


def stated_templates(spec: Spec) -> Iterator[tuple[Path, Chat, str]]:
    """Yield each section `chat` that names a template, with its place and that name."""
    for index, model in usable(spec.models):
        if model.chat is not None and model.chat.template is not None:
            yield ("spec", "models", index, "chat"), model.chat, model.chat.template


def with_chats(spec: Spec, chats: Mapping[Path, Chat]) -> Spec:
    """Return the blueprint's section, which may have invalid values, with other sections `chat`.

    chats: Sections by their place, as `stated_templates` yields it.
    """
    if not chats:
        return spec
    models = [*spec.models]
    for (_, _, index, _), chat in chats.items():
        models[int(index)] = models[int(index)].model_copy(update={"chat": chat})
    return spec.model_copy(update={"models": models})
