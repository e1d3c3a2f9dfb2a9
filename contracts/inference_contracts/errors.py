"""Errors for users. Each states where, what was found, what is allowed and what to do."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """One error or warning about a blueprint."""

    file: str
    """The file as the user named it."""
    line: int
    column: int
    """`line`, `column`: Position of the offending key or value, counted from 1; 0 for a problem of the whole
    file."""
    path: str
    """Place in the document, such as ``spec.models[0].deployments[0].aggregated.pool``; empty for the
    file."""
    message: str
    """What was found, what is allowed and what to do, on one line."""
    severity: Literal["error", "warning"] = "error"
    """``error`` stops every command, ``warning`` is only shown."""

    def __str__(self) -> str:
        """Return ``file:line:column: path: message``, without the parts that do not apply."""
        position = f"{self.file}:{self.line}:{self.column}" if self.line else self.file
        return ": ".join(part for part in (position, self.path, self.message) if part)

    def as_dict(self) -> dict[str, str | int]:
        """Return the fields of the JSON output: file, line, column, path, message."""
        return {key: value for key, value in asdict(self).items() if key != "severity"}


@dataclass(frozen=True, slots=True)
class Finding:
    """An error or warning of a rule, without its position in the file."""

    path: tuple[str | int, ...]
    """Keys as the YAML file spells them, and list indexes: ``("spec", "models", 0, "weights")``."""
    message: str
    """What was found, what is allowed and what to do, on one line."""
    severity: Literal["error", "warning"] = "error"
    """``error`` stops every command, ``warning`` is only shown."""


class UserError(Exception):
    """An error that the user can fix; the command line prints it as one line and exits with 1."""


class BlueprintError(UserError):
    """A blueprint that cannot be used.

    problems: Every error found, in the order of the file.
    """

    def __init__(self, problems: list[Problem]) -> None:
        self.problems = sorted(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))
