"""The models of an endpoint, and whether its engines are real."""

from __future__ import annotations

import aiohttp

from inference_blueprints.measure.completions.completion_client import (
    BROKEN,
    MALFORMED,
    TIMED_OUT,
    connection_failure,
)
from inference_contracts.records import dataclass

#: Response header of local endpoints of this library, with the kind of their engines.
ENGINE_HEADER = "X-Inference-Blueprints-Engine"
SIMULATED = "simulated"
#: Real engines on the processors of a machine. Their times say nothing about accelerators.
ON_PROCESSORS = "on processors"
_HTTP_OK = 200


class ListingFailedError(Exception):
    """An endpoint did not list its models.

    reason: Reason of the failure. The same cause has the same text, as in an outcome.
    detail: Message of the endpoint or the operating system.
    """

    def __init__(self, reason: str, detail: object = "") -> None:
        super().__init__(f"{reason} ({detail})" if detail else reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class ServedModels:
    """The answer to ``GET /v1/models``."""

    names: tuple[str, ...]
    engines: str = ""
    """Kind of the engines, as local endpoints of this library state it; empty for others."""

    @property
    def simulated(self) -> bool:
        """Whether the engines are simulated."""
        return self.engines == SIMULATED

    @property
    def on_processors(self) -> bool:
        """Whether real engines run on processors, so that times mean nothing."""
        return self.engines == ON_PROCESSORS


async def served_models(
    session: aiohttp.ClientSession, base_url: str, *, timeout_seconds: float
) -> ServedModels:
    """List the models of an endpoint.

    session: Session to use. The caller closes it.
    timeout_seconds: Maximum time for the response.
    Raises ListingFailedError if it does not answer with a list.
    """
    timeout = aiohttp.ClientTimeout(total=timeout_seconds)
    try:
        async with session.get(f"{base_url}/v1/models", timeout=timeout) as response:
            if response.status != _HTTP_OK:
                raise ListingFailedError(f"HTTP {response.status}")
            # llama.cpp lists one model with all of its names (``tools/server/server-context.cpp``, b11434).
            names = tuple(
                str(name)
                for model in (await response.json())["data"]
                for name in dict.fromkeys((model["id"], *model.get("aliases", ())))
            )
            return ServedModels(names, response.headers.get(ENGINE_HEADER, ""))
    except TimeoutError as error:
        raise ListingFailedError(TIMED_OUT, f"{timeout_seconds:g} s") from error
    except aiohttp.ClientConnectorError as error:
        raise ListingFailedError(connection_failure(error), error.os_error) from error
    except (aiohttp.ContentTypeError, ValueError, LookupError, TypeError) as error:
        raise ListingFailedError(MALFORMED, error) from error
    except (aiohttp.ClientError, ConnectionError) as error:
        raise ListingFailedError(BROKEN, error) from error
