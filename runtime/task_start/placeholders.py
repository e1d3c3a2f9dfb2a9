"""Fills ``$(address)`` and ``$(port:NAME)`` into texts."""

from __future__ import annotations

import re
from collections.abc import Mapping

from task_start.start_document import TaskStartError

_PLACEHOLDER = re.compile(r"\$\((?:(address)|port:([^()]*))\)")


def filled(text: str, address: str, ports: Mapping[str, int]) -> str:
    """Return a text with values in place of the placeholders. Other text in parentheses stays.

    Raises TaskStartError if a placeholder names an unknown port.
    """

    def value(match: re.Match[str]) -> str:
        if match[1]:
            return address
        if match[2] not in ports:
            names = ", ".join(sorted(ports)) or "none"
            raise TaskStartError(f"{match[0]}: no such port; the task has: {names}")
        return str(ports[match[2]])

    return _PLACEHOLDER.sub(value, text)
