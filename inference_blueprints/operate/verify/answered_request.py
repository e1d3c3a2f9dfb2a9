"""Sends a request of a check to an endpoint, and says in words why it has no answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import aiohttp

from inference_blueprints.measure.completions.completion_client import TIMED_OUT, connection_failure

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
