"""Identifiers, in the shapes of the OpenAI API; random, so that none can be guessed and S3 spreads them."""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from typing import Final, Literal

Kind = Literal["batch", "file", "upload", "part"]

_SEPARATORS: Final[dict[Kind, str]] = {"batch": "_", "file": "-", "upload": "_", "part": "_"}
_HEX: Final = "[0-9a-f]{32}"


def new(kind: Kind) -> str:
    """Return an identifier that nothing has yet."""
    return f"{kind}{_SEPARATORS[kind]}{uuid.uuid4().hex}"


def is_identifier(text: str, kind: Kind) -> bool:
    """Return whether a text has the shape of an identifier of this kind."""
    return re.fullmatch(f"{kind}{_SEPARATORS[kind]}{_HEX}", text) is not None


def result_file(job: str, name: Literal["output", "error"]) -> str:
    """Return the identifier of a job's output or error file; the same each time, so that it is made once.

    Parameters
    ----------
    job
        The job's identifier, which nobody can guess; neither can they this one.
    name
        Which of the two.
    """
    return f"file-{digest(job, name)[:32]}"


def digest(*words: str) -> str:
    """Return a digest of words that no other words have.

    Parameters
    ----------
    words
        The words; where one ends and the next begins is part of it.
    """
    return hashlib.sha256(json.dumps(words).encode()).hexdigest()
