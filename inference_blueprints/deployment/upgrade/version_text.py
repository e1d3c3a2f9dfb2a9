"""Changes the Kubernetes version in a blueprint's text, and nothing else of it."""

from __future__ import annotations

import re

from inference_blueprints.errors import UserError
from inference_blueprints.spec.document import Document
from inference_blueprints.spec.wording import Path, quote

VERSION_PATH: Path = ("spec", "cluster", "eks", "version")
_QUOTED = re.compile(r"""(["'])([0-9.]*)\1""")


def with_version(text: str, document: Document, version: str) -> str:
    """Return a blueprint's text with another Kubernetes version; comments and form stay.

    Parameters
    ----------
    text
        The file's text.
    document
        The same, read.
    version
        Such as ``1.36``.

    Raises
    ------
    UserError
        If the version does not stand at its place in quotes, as where it is an alias of another value.
    """
    node = document.node(VERSION_PATH)
    lines = re.split(r"(\r\n|\r|\n)", text)
    before = "".join(lines[: 2 * (node.start.line - 1)])
    offset = len(before) + node.start.column - 1
    found = _QUOTED.match(text, offset)
    if found is None or found[2] != node.value:
        message = (
            f"the version cannot be written here; write {quote(version)} yourself, and upgrade without --to"
        )
        raise UserError(str(document.problem(VERSION_PATH, message)))
    return f"{text[: found.start(2)]}{version}{text[found.end(2) :]}"
