"""Reads documents that people write, field by field, and reports all errors at once.

No validation library: each error needs a code and a parameter of the OpenAI API, and compiled libraries
cannot ship with the functions (`inference_contracts.json_record`).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Mapping
from typing import Any, Final

from batch.jobs.job_table import JobError

# OpenAI's limits of metadata (https://platform.openai.com/docs/api-reference/batch/create).
_MAX_PAIRS: Final = 16
_LONGEST_KEY: Final = 64
_LONGEST_VALUE: Final = 512
_MAX_REPORTED: Final = 50
# Characters of an invalid value that a message shows.
_SHOWN: Final = 80
# Digits of a fraction that are stored: enough for hours and dollars. The table has room for 38 in all, and a
# float has more than six.
_DIGITS: Final = 6


class InvalidError(Exception):
    """An invalid document.

    problems: All problems. If there are very many, only the first, because they must fit into a response.
    """

    def __init__(self, problems: Collection[JobError]) -> None:
        told = list(problems)[:_MAX_REPORTED]
        if len(problems) > len(told):
            told.append(JobError("more", f"and {len(problems) - len(told)} more"))
        super().__init__("; ".join(problem.message for problem in told))
        self.problems = tuple(told)


def read_object(text: str | bytes) -> dict[str, Any]:
    """Return a JSON object. Raises InvalidError if the text is not a JSON object."""
    try:
        values = json.loads(text, parse_constant=_refuse_constant)
        # JSON can contain a lone surrogate. UTF-8 cannot.
        json.dumps(values, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise InvalidError([JobError("invalid_json", f"the document is not JSON: {error}")]) from error
    if not isinstance(values, dict):
        raise InvalidError([JobError("invalid_json", f"the document is {_shown(values)}, not a JSON object")])
    return values


class Fields:
    """The fields of an object. `finish` raises all problems found in them.

    prefix: Path of the object in the document, with a dot at its end; empty for the document itself.
    """

    def __init__(self, values: Mapping[str, Any], *, prefix: str = "") -> None:
        self._values = values
        self._prefix = prefix
        self._asked: set[str] = set()
        self.problems: list[JobError] = []

    def wrong(self, name: str, message: str, *, code: str = "invalid_value") -> None:
        """Note that a field is invalid.

        message: The received value and the allowed values.
        code: Stable error code for programs.
        """
        path = f"{self._prefix}{name}"
        self.problems.append(JobError(code, f"{path}: {message}", param=path))

    def text(
        self, name: str, *, default: str | None = None, choices: Collection[str] = (), longest: int = 1024
    ) -> str:
        value = self._get(name, required=default is None)
        if value is None:
            return default or ""
        if not isinstance(value, str) or not value:
            self.wrong(name, f"got {_shown(value)}, must be a string that is not empty")
        elif choices and value not in choices:
            self.wrong(name, f"got {_shown(value)}, must be one of {', '.join(choices)}")
        elif len(value) > longest:
            self.wrong(name, f"has {len(value)} characters, at most {longest} are allowed")
        else:
            return value
        return default or ""

    def matching(
        self, name: str, pattern: str, *, meaning: str, default: str | None = None
    ) -> re.Match[str] | None:
        """Return the match of a text with a pattern; None if it does not match.

        meaning: Description of the allowed values, for people.
        default: Text to use if the field is missing; None if it is required.
        """
        value = self.text(name, default=default)
        if not value:
            return None
        match = re.fullmatch(pattern, value, re.ASCII)
        if match is None:
            self.wrong(name, f"got {_shown(value)}, must be {meaning}")
        return match

    def number(
        self, name: str, *, default: float | None, minimum: float, maximum: float, whole: bool = False
    ) -> float:
        """Return a number. A text with a number counts as one, because metadata values are texts.

        default: Value to use if the field is missing; None if it is required.
        whole: Whether it must be a whole number.
        """
        value = self._get(name, required=default is None)
        fallback = minimum if default is None else default
        if value is None:
            return fallback
        number = _number(value)
        if number is None or not minimum <= number <= maximum or (whole and number != int(number)):
            kind = "a whole number" if whole else "a number"
            self.wrong(name, f"got {_shown(value)}, must be {kind} from {minimum:g} to {maximum:g}")
            return fallback
        rounded = int(number) if whole else round(number, _DIGITS)
        if number and not rounded:
            self.wrong(name, f"got {_shown(value)}, must be at least {10**-_DIGITS:.{_DIGITS}f}, or 0")
        return rounded

    def flag(self, name: str) -> bool:
        """Return a Boolean; false if it is missing. The texts `true` and `false` are accepted."""
        value = self._get(name, required=False)
        if value is None:
            return False
        if value in (True, "true"):
            return True
        if value not in (False, "false"):
            self.wrong(name, f"got {_shown(value)}, must be true or false")
        return False

    def texts(self, name: str, *, required: bool) -> tuple[str, ...]:
        """Return a list of texts.

        required: Whether the list must exist and not be empty.
        """
        value = self._get(name, required=required)
        if value is None:
            return ()
        if not isinstance(value, list) or not all(isinstance(each, str) and each for each in value):
            self.wrong(name, f"got {_shown(value)}, must be a list of strings that are not empty")
            return ()
        if required and not value:
            self.wrong(name, "is empty; give at least one")
        return tuple(value)

    def mapping(self, name: str, *, required: bool = False) -> dict[str, Any] | None:
        """Return an object; None if it is missing or invalid.

        required: Whether the field is required.
        """
        value = self._get(name, required=required)
        if value is None or isinstance(value, dict):
            return value
        self.wrong(name, f"got {_shown(value)}, must be an object")
        return None

    def metadata(self, name: str = "metadata") -> dict[str, str]:
        """Return a mapping of texts within OpenAI's limits."""
        pairs = self.mapping(name) or {}
        if len(pairs) > _MAX_PAIRS:
            self.wrong(name, f"has {len(pairs)} pairs, at most {_MAX_PAIRS} are allowed")
        for key, value in pairs.items():
            if not isinstance(value, str) or not 0 < len(key) <= _LONGEST_KEY or len(value) > _LONGEST_VALUE:
                self.wrong(
                    name,
                    f"{_shown(key)} is {_shown(value)}, must be a string of at most {_LONGEST_VALUE} "
                    f"characters under a key of 1 to {_LONGEST_KEY}",
                )
        return {key: value for key, value in pairs.items() if isinstance(value, str)}

    def finish(self) -> None:
        """Raise all problems, including unknown fields. Raises InvalidError if there are any."""
        self.close()
        if self.problems:
            raise InvalidError(self.problems)

    def close(self) -> None:
        """Note unknown fields as problems."""
        for name in self._values:
            if name not in self._asked:
                known = ", ".join(sorted(self._asked))
                self.wrong(name[:_SHOWN], f"is unknown; known fields are {known}", code="unknown_parameter")

    def _get(self, name: str, *, required: bool) -> Any:
        """Return a field's value. Null counts as missing."""
        self._asked.add(name)
        value = self._values.get(name)
        if value is None and required:
            self.wrong(name, "is missing", code="missing_required_parameter")
        return value


def _number(value: object) -> float | None:
    """Return a value as a number; None if it is not one."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _refuse_constant(name: str) -> float:
    """Refuse constants that Python accepts and JSON does not have."""
    raise ValueError(f"{name} is not JSON")


def _shown(value: object) -> str:
    """Return a value as a message shows it."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
