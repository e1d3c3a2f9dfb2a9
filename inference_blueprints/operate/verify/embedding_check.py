"""Sends inputs to an embedding model and checks the vectors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import aiohttp

from inference_blueprints.operate.check_results import CheckResult
from inference_blueprints.operate.verify.answered_request import ModelUnansweredError, answered

CHECK = "embeddings"
_INPUTS = ("a river of light", "a table made of stone")
_PATH = "/v1/embeddings"


async def embeddings(
    session: aiohttp.ClientSession, base_url: str, model: str, label: str, timeout_seconds: float
) -> CheckResult:
    """Check that an endpoint turns two inputs into two different vectors of the same length.

    base_url: Address of the endpoint, without ``/v1``.
    label: Name in the message, such as ``vectors/main``.
    timeout_seconds: Maximum time of the answer.
    """
    body = {"model": model, "input": list(_INPUTS)}
    try:
        vectors = await answered(
            session, base_url, _PATH, body, timeout_seconds=timeout_seconds, read=_vectors
        )
    except ModelUnansweredError as error:
        return _wrong(label, f"no vectors: {error}")
    problem = _problem(vectors)
    if problem:
        return _wrong(label, problem)
    return CheckResult(CHECK, "ok", f"{label}: {len(vectors)} vectors of {len(vectors[0]):,} numbers")


def _vectors(answer: Any) -> list[list[float]]:
    return [each["embedding"] for each in answer["data"]]


def _problem(vectors: Sequence[Sequence[float]]) -> str | None:
    """Return why the vectors cannot be those of the inputs; None if they can."""
    if len(vectors) != len(_INPUTS):
        return f"{len(vectors)} vectors for {len(_INPUTS)} inputs"
    if not all(isinstance(vector, list) and vector for vector in vectors):
        return "a vector is empty or is not a list of numbers"
    if not all(
        isinstance(each, int | float) and math.isfinite(each) for vector in vectors for each in vector
    ):
        return "a vector contains values that are not finite numbers"
    first, second = vectors
    if len(first) != len(second):
        return f"vectors of {len(first)} and {len(second)} numbers"
    return "two different inputs have the same vector" if first == second else None


def _wrong(label: str, message: str) -> CheckResult:
    return CheckResult(CHECK, "error", f"{label}: {message}")
