"""Reads a chat template beside a blueprint: what every program that writes prompts can use of it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from inference_contracts.errors import UserError

#: Bytes of a template: half of the longest word of a command on Linux (``MAX_ARG_STRLEN``, execve(2)).
MAX_BYTES: Final = 64 * 1024
#: Marks of what a model wrote, for training (``chat_template_utils.py`` of transformers). They write nothing.
_MARKS = re.compile(r"\{%-?\s*(?:end)?generation\s*-?%\}")


def read_template(path: Path) -> str:
    """Return the text of a chat template.

    Raises UserError if the file cannot be read, is too large, or is not a template of a chat.
    """
    try:
        content = path.read_bytes()
        text = content.decode("utf-8")
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: is not text in UTF-8; save it as such") from error
    if len(content) > MAX_BYTES:
        raise UserError(f"{path}: has {len(content)} bytes, allowed are {MAX_BYTES}")
    fault = _fault(text)
    if fault:
        raise UserError(f"{path}{fault}")
    return text


def _fault(text: str) -> str | None:
    """Return what is wrong with a template, after the name of its file; None if nothing is."""
    if "\0" in text:
        return ": holds a character with the code 0; remove it"
    if "$(" in text:
        return ": holds '$(', which Kubernetes would replace by a variable; write {{ '$' }}( instead"
    # A tenth of a second to import, and few blueprints have a template.
    from jinja2 import Environment, TemplateSyntaxError, meta  # noqa: PLC0415

    # What the engines add to the language: ``break`` and ``continue`` (as transformers does).
    environment = Environment(extensions=["jinja2.ext.loopcontrols"], autoescape=False)  # noqa: S701 -- not HTML
    try:
        tree = environment.parse(_MARKS.sub("", text))
    except TemplateSyntaxError as error:
        return f":{error.lineno}: is not a Jinja template: {error.message}"
    if "messages" not in meta.find_undeclared_variables(tree):
        return ": reads no 'messages', so prompts would not hold what callers say; is it a chat template?"
    return None
