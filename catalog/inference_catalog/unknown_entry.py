"""The error for a name that the catalogue does not have."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from inference_contracts.errors import UserError


class UnknownEntryError(UserError, LookupError):
    """The catalogue has no entry with this name.

    Parameters
    ----------
    kind
        Kind of the entry, such as ``instance type``.
    name
        The requested name.
    known
        The names in the catalogue.
    """

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        self.kind = kind
        self.name = name
        self.known = tuple(known)
        self.close_matches = tuple(difflib.get_close_matches(name, self.known, n=3))
        hint = f"; did you mean {' or '.join(repr(match) for match in self.close_matches)}?"
        super().__init__(f"got {kind} {name!r}, not in the catalogue{hint if self.close_matches else ''}")
