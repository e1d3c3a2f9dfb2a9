"""What an endpoint serves, and whether its engines are real."""

from __future__ import annotations

from dataclasses import dataclass

import aiohttp

from inference_blueprints.measurement.completions.completion_client import (
    BROKEN,
    MALFORMED,
    REFUSED,
    TIMED_OUT,
)

#: Response header with which the endpoints of this library's local platform say what their engines are.
ENGINE_HEADER = "X-Inference-Blueprints-Engine"
SIMULATED = "simulated"
_HTTP_OK = 200


class ListingFailedError(Exception):
    """An endpoint that does not say what it serves.

    Parameters
    ----------
    reason
        In words that are the same for the same cause, as an outcome's failure.
    detail
        What the endpoint or the operating system said about it.
    """

    def __init__(self, reason: str, detail: object = "") -> None:
        super().__init__(f"{reason} ({detail})" if detail else reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class ServedModels:
    """The answer to ``GET /v1/models``.

    Parameters
    ----------
    names
        Models that can be asked for.
    simulated
        Whether latencies are those of simulated engines.
    """

    names: tuple[str, ...]
    simulated: bool


async def served_models(
    session: aiohttp.ClientSession, base_url: str, *, timeout_seconds: float
) -> ServedModels:
    """Ask an endpoint what it serves.

    Parameters
    ----------
    session
        Connections to use; the caller closes it.
    timeout_seconds
        Longest time for the answer.

    Raises
    ------
    ListingFailedError
        If it does not answer, or not with a list.
    """
    timeout = aiohttp.ClientTimeout(total=timeout_seconds)
    try:
        async with session.get(f"{base_url}/v1/models", timeout=timeout) as response:
            if response.status != _HTTP_OK:
                raise ListingFailedError(f"HTTP {response.status}")
            names = tuple(str(model["id"]) for model in (await response.json())["data"])
            return ServedModels(names, response.headers.get(ENGINE_HEADER) == SIMULATED)
    except TimeoutError as error:
        raise ListingFailedError(TIMED_OUT, f"{timeout_seconds:g} s") from error
    except aiohttp.ClientConnectorError as error:
        raise ListingFailedError(REFUSED, error.os_error) from error
    except (aiohttp.ContentTypeError, ValueError, LookupError, TypeError) as error:
        raise ListingFailedError(MALFORMED, error) from error
    except (aiohttp.ClientError, ConnectionError) as error:
        raise ListingFailedError(BROKEN, error) from error
