"""Identifiers in the forms of the OpenAI API: random, so that nobody can guess them and S3 spreads them."""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from typing import Final, Literal

from inference_contracts.batch_keys import JOB_PATTERN

#: Those of jobs are made by `inference_contracts.batch_keys`.
Kind = Literal["file", "upload", "part"]

_SEPARATORS: Final[dict[Kind, str]] = {"file": "-", "upload": "_", "part": "_"}
_HEX: Final = "[0-9a-f]{32}"


def new(kind: Kind) -> str:
    """Return a new random identifier."""
    return f"{kind}{_SEPARATORS[kind]}{uuid.uuid4().hex}"


def is_identifier(text: str, kind: Kind) -> bool:
    """Return whether a text has the form of an identifier of this kind."""
    return re.fullmatch(f"{kind}{_SEPARATORS[kind]}{_HEX}", text) is not None


def is_job(text: str) -> bool:
    """Return whether a text has the form of a job's identifier."""
    return re.fullmatch(JOB_PATTERN, text) is not None


def result_file(job: str, name: Literal["output", "error"]) -> str:
    """Return the identifier of a job's output or error file.

    It is always the same, so the file is created once.

    job: The job's identifier. Nobody can guess it, so nobody can guess the result either.
    name: Which of the two files.
    """
    return f"file-{digest(job, name)[:32]}"


def digest(*words: str) -> str:
    """Return a digest of several texts. Different lists of texts have different digests.

    words: The texts. Their boundaries are part of the digest.
    """
    return hashlib.sha256(json.dumps(words).encode()).hexdigest()
