"""Asks a model for embeddings, scores, an image or an answer in a JSON schema, and checks what it sends."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import aiohttp

from inference_blueprints.measure.completions.completion_client import TIMED_OUT, connection_failure
from inference_blueprints.measure.completions.image_client import count_images, image_body
from inference_blueprints.operate.check_results import CheckResult
from inference_blueprints.spec.types import ImageRequests
from inference_contracts.batch_body_fields import IMAGES_PATH

_HTTP_OK = 200
SHOWN_CHARACTERS = 200
Answer = TypeVar("Answer")


class ModelUnansweredError(Exception):
    """A request without an answer. The text says why."""


async def answered(
    session: aiohttp.ClientSession,
    base_url: str,
    path: str,
    body: Mapping[str, Any],
    *,
    timeout_seconds: float,
    read: Callable[[Any], Answer],
) -> Answer:
    """Send a request, and return what is read of its answer.

    base_url: Address of the endpoint, without ``/v1``.
    path: Path of the request, such as ``/v1/embeddings``.
    timeout_seconds: Maximum time of the answer.
    read: Takes what is needed from the JSON of the answer. It may raise any error about its layout.
    Raises ModelUnansweredError if there is no answer, if its status is an error, or if ``read`` fails.
    """
    timeout = aiohttp.ClientTimeout(total=timeout_seconds)
    try:
        async with session.post(f"{base_url}{path}", json=body, timeout=timeout) as response:
            if response.status != _HTTP_OK:
                detail = (await response.text())[:SHOWN_CHARACTERS]
                raise ModelUnansweredError(f"HTTP {response.status} ({detail})")
            return read(await response.json())
    except TimeoutError:
        raise ModelUnansweredError(f"{TIMED_OUT} ({timeout_seconds:g} s)") from None
    except aiohttp.ClientConnectorError as error:
        raise ModelUnansweredError(connection_failure(error)) from error
    except (aiohttp.ClientError, ConnectionError, ValueError, LookupError, TypeError) as error:
        raise ModelUnansweredError(f"the answer is not one of {path}: {error}") from error


EMBEDDING_CHECK = "embeddings"
_INPUTS = ("a river of light", "a table made of stone")
_EMBEDDING_PATH = "/v1/embeddings"


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
            session, base_url, _EMBEDDING_PATH, body, timeout_seconds=timeout_seconds, read=_vectors
        )
    except ModelUnansweredError as error:
        return _wrong(label, f"no vectors: {error}")
    problem = _problem(vectors)
    if problem:
        return _wrong(label, problem)
    return CheckResult(
        EMBEDDING_CHECK, "ok", f"{label}: {len(vectors)} vectors of {len(vectors[0]):,} numbers"
    )


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
    return CheckResult(EMBEDDING_CHECK, "error", f"{label}: {message}")


SCORE_CHECK = "scores"
_RERANK_PATH = "/v1/rerank"


async def scores(
    session: aiohttp.ClientSession, base_url: str, model: str, label: str, timeout_seconds: float
) -> CheckResult:
    """Check that an endpoint scores two texts for a question, and not both the same.

    base_url: Address of the endpoint, without ``/v1``.
    label: Name in the message, such as ``ranker/main``.
    timeout_seconds: Maximum time of the answer.
    """
    body = {"model": model, "query": _INPUTS[0], "documents": list(_INPUTS)}
    try:
        found = await answered(
            session, base_url, _RERANK_PATH, body, timeout_seconds=timeout_seconds, read=_scores
        )
    except ModelUnansweredError as error:
        return CheckResult(SCORE_CHECK, "error", f"{label}: no scores: {error}")
    problem = _problem_of_scores(found)
    if problem:
        return CheckResult(SCORE_CHECK, "error", f"{label}: {problem}")
    return CheckResult(SCORE_CHECK, "ok", f"{label}: {len(found)} scores")


def _scores(answer: Any) -> list[float]:
    return [each["relevance_score"] for each in answer["results"]]


def _problem_of_scores(found: Sequence[float]) -> str | None:
    """Return why the scores cannot be those of the texts; None if they can."""
    if len(found) != len(_INPUTS):
        return f"{len(found)} scores for {len(_INPUTS)} texts"
    if not all(isinstance(each, int | float) and math.isfinite(each) for each in found):
        return "a score is not a finite number"
    return "two different texts have the same score" if found[0] == found[1] else None


IMAGE_CHECK = "images"
_PROMPT = "a red bridge in the fog"


async def generated_images(
    session: aiohttp.ClientSession,
    base_url: str,
    model: str,
    label: str,
    timeout_seconds: float,
    *,
    images: ImageRequests,
) -> CheckResult:
    """Check that an endpoint answers with as many images as the workload states.

    base_url: Address of the endpoint, without ``/v1``.
    label: Name in the message, such as ``z-image-turbo/main``.
    timeout_seconds: Maximum time of the answer.
    images: The workload of the model.
    """
    body = image_body(model, _PROMPT, images)
    try:
        found = await answered(
            session, base_url, IMAGES_PATH, body, timeout_seconds=timeout_seconds, read=count_images
        )
    except ModelUnansweredError as error:
        return CheckResult(IMAGE_CHECK, "error", f"{label}: no images: {error}")
    if found != images.per_request:
        message = f"{label}: {found} images instead of {images.per_request}"
        return CheckResult(IMAGE_CHECK, "error", message)
    return CheckResult(IMAGE_CHECK, "ok", f"{label}: {found} PNG of {images.size} in {images.steps} steps")


STRUCTURED_OUTPUT_CHECK = "structured output"
_CHOICES, _SWITCH = ("lake", "river"), "deep"
#: Values that no engine can draw out, so that an answer is short whatever the model.
_SCHEMA = {
    "type": "object",
    "properties": {"kind": {"type": "string", "enum": [*_CHOICES]}, _SWITCH: {"type": "boolean"}},
    "required": ["kind", _SWITCH],
    "additionalProperties": False,
}
#: Enough for a model that reasons before it answers.
_TOKENS = 1024
_STRUCTURED_OUTPUT_PATH = "/v1/chat/completions"


async def structured_output(
    session: aiohttp.ClientSession, base_url: str, model: str, label: str, timeout_seconds: float
) -> CheckResult:
    """Check that an answer follows the JSON schema of its request.

    base_url: Address of the endpoint, without ``/v1``.
    label: Name in the message, such as ``qwen3-8b/main``.
    timeout_seconds: Maximum time of the answer.
    """
    body = {
        "model": model,
        "messages": [{"role": "user", "content": "Name a kind of water, and whether it is deep, as JSON."}],
        "max_tokens": _TOKENS,
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "water", "schema": _SCHEMA, "strict": True},
        },
        "chat_template_kwargs": {"enable_thinking": False},
    }
    try:
        text, ending = await answered(
            session,
            base_url,
            _STRUCTURED_OUTPUT_PATH,
            body,
            timeout_seconds=timeout_seconds,
            read=_text_and_ending,
        )
    except ModelUnansweredError as error:
        return CheckResult(STRUCTURED_OUTPUT_CHECK, "error", f"{label}: {error}")
    return _judged(label, text, ending)


def _text_and_ending(answer: Any) -> tuple[str, str]:
    """Return the text of an answer, and why it ended."""
    (choice,) = answer["choices"]
    return choice["message"].get("content") or "", choice["finish_reason"]


def _judged(label: str, text: str, ending: str) -> CheckResult:
    """Judge an answer."""
    if _fits(text):
        return CheckResult(
            STRUCTURED_OUTPUT_CHECK, "ok", f"{label}: the answer follows the JSON schema of its request"
        )
    if ending == "length":
        message = f"{label}: the answer was cut off after {_TOKENS} tokens, so its layout is not known"
        return CheckResult(STRUCTURED_OUTPUT_CHECK, "unknown", message)
    found = text[:SHOWN_CHARACTERS]
    message = f"{label}: the answer does not follow the JSON schema of its request: {found!r}"
    return CheckResult(STRUCTURED_OUTPUT_CHECK, "error", message)


def _fits(text: str) -> bool:
    """Whether a text is JSON of the schema."""
    try:
        value: Any = json.loads(text)
    except ValueError:
        return False
    return (
        isinstance(value, dict)
        and value.keys() == {"kind", _SWITCH}
        and value["kind"] in _CHOICES
        and isinstance(value[_SWITCH], bool)
    )
