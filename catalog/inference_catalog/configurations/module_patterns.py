"""Matches names of modules with the patterns of quantisation settings."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable

from inference_catalog.configurations.config_fields import ConfigFields

_REGULAR = "re:"
_MAX_PATTERN = 300
_MAX_EXPRESSIONS = 3000
_MAX_REPETITIONS = 5
#: With repeated groups or many repetitions, matching could take very long.
_REPEATED_GROUP = re.compile(r"\)[+*{]")


class ModulePatterns:
    """Patterns of module names: a part of the path, ``*`` for any text, or ``re:`` and an expression.

    Parameters
    ----------
    patterns
        The patterns.
    fields
        Receives a problem if a pattern cannot be used.
    name
        Field of the patterns, for the problem.
    """

    def __init__(self, patterns: Iterable[str], fields: ConfigFields, name: str) -> None:
        self._paths: set[str] = set()
        self._expressions: list[re.Pattern[str]] = []
        for pattern in patterns:
            if len(pattern) > _MAX_PATTERN:
                fields.wrong(name, f"patterns of at most {_MAX_PATTERN} characters")
                return
            self._add(pattern, fields, name)
        if len(self._expressions) > _MAX_EXPRESSIONS:
            fields.wrong(name, f"at most {_MAX_EXPRESSIONS} patterns with wildcards")
            self._expressions = []

    def match(self, name: str) -> bool:
        """Whether a pattern names the module, a module that contains it, or the last parts of its path."""
        parts = name.split(".")
        ends = range(1, len(parts) + 1)
        if any(".".join(parts[start:end]) in self._paths for end in ends for start in range(end)):
            return True
        return any(each.match(name) for each in self._expressions)

    def _add(self, pattern: str, fields: ConfigFields, name: str) -> None:
        if pattern.startswith(_REGULAR):
            expression = pattern.removeprefix(_REGULAR)
            if _REPEATED_GROUP.search(expression) or _repetitions(expression) > _MAX_REPETITIONS:
                fields.wrong(name, "expressions without repeated groups and with few repetitions")
                return
            try:
                self._expressions.append(re.compile(_without_wrapper(expression)))
            except re.error as error:
                fields.wrong(name, f"valid regular expressions after 're:' ({pattern!r}: {error})")
        elif _repetitions(pattern) > _MAX_REPETITIONS:
            fields.wrong(name, f"patterns with at most {_MAX_REPETITIONS} wildcards")
        elif "*" in pattern or "?" in pattern:
            plain = _without_wrapper(pattern)
            self._expressions.append(re.compile(fnmatch.translate(plain)))
            self._expressions.append(re.compile(fnmatch.translate(f"{plain}.*")))
        else:
            self._paths.add(_without_wrapper(pattern))


def _repetitions(pattern: str) -> int:
    return sum(map(pattern.count, "*+{"))


def _without_wrapper(pattern: str) -> str:
    """Remove the part of a path that models with images put before the language model's own names."""
    for wrapper in ("model.language_model.", "language_model.model.", "language_model."):
        if pattern.startswith(wrapper):
            return ("" if wrapper == "language_model." else "model.") + pattern.removeprefix(wrapper)
    return pattern
