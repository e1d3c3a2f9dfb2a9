"""Values of unquoted YAML words. Words that YAML versions read differently are refused.

YAML 1.1 (https://yaml.org/type/) reads ``on`` as true, ``1:30`` as 90 and ``010`` as 8; YAML 1.2 does not.
Such words must be quoted or written differently.
"""

from __future__ import annotations

import re

#: Maximum digits of a number; 64 bits hold any 18 digits.
MAXIMUM_DIGITS = 18

_CONSTANTS: dict[str, bool | None] = {
    "": None,
    "~": None,
    **dict.fromkeys(("null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_DECIMAL = re.compile(
    r"[-+]?(0|[1-9][0-9]*)(\.[0-9]*)?([eE][-+]?[0-9]{1,3})?|[-+]?\.[0-9]+([eE][-+]?[0-9]{1,3})?"
)

#: Pattern of a word, and why it is refused.
_AMBIGUOUS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), reason)
    for pattern, reason in (
        (r"(?i:y|yes|on)", "which YAML may read as true; write true, or quote it if it is text"),
        (r"(?i:n|no|off)", "which YAML may read as false; write false, or quote it if it is text"),
        (
            r"(?i:[-+]?\.inf|\.nan)",
            "which is not a finite number; write a finite one, or quote it if it is text",
        ),
        (r"[-+]?0[0-9_]+", "which YAML may read as octal; quote it, or write it without the leading 0"),
        (r"[-+]?0[oxb][0-9a-fA-F_]+", "which YAML may read as a number; write it in decimal, or quote it"),
        (
            r"[-+]?[0-9]+(_[0-9]*)+(\.[0-9_]*)?",
            "which YAML may read as a number; leave out the _, or quote it",
        ),
        (r"[-+]?[0-9]+(:[0-5]?[0-9])+(\.[0-9]*)?", "which YAML may read in base 60; quote it"),
        (r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([Tt \t].*)?", "which YAML may read as a date; quote it"),
        (r"=|<<", "which has a special meaning in YAML; quote it"),
    )
)


class AmbiguousScalarError(ValueError):
    """A plain word that YAML versions read differently; the message states how, and what to write."""


def resolve(text: str) -> str | int | float | bool | None:
    """Return the value of a plain (unquoted) scalar.

    text: The scalar as written.
    Raises AmbiguousScalarError if YAML versions read it differently, or if it is a number that is too large.
    """
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    for pattern, reason in _AMBIGUOUS:
        if pattern.fullmatch(text):
            raise AmbiguousScalarError(reason)
    if _INTEGER.fullmatch(text):
        if len(text) > MAXIMUM_DIGITS:
            raise AmbiguousScalarError(
                f"a number of more than {MAXIMUM_DIGITS} digits; use a smaller one, or quote it if it is text"
            )
        return int(text)
    if _DECIMAL.fullmatch(text):
        number = float(text)
        if number in (float("inf"), float("-inf")):
            raise AmbiguousScalarError(
                "which is too large a number; use a smaller one, or quote it if it is text"
            )
        return number
    return text
