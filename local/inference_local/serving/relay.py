"""Forwards requests from listening sockets of this machine to frontends inside a network namespace.

A separate program: ``python -m inference_local.serving.relay ROUTES``, where the routes are a
JSON list with an object for each `Route` and the file descriptor of its socket. A socket stays in the
namespace in which it was created. So this process runs inside the namespace and accepts connections on
sockets that it inherited from outside.
"""

from __future__ import annotations

import asyncio
import json
import socket
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from aiohttp import ClientError, ClientSession, web

from inference_blueprints.measure.completions.served_models import ENGINE_HEADER, SIMULATED
from inference_local.serving.http_forwarding import application, carry, forward, forwarding_session
from inference_local.serving.image_requests import (
    TEXT_ALONE,
    ImageLimits,
    ImageRefusedError,
    with_images_as_words,
)
from inference_local.serving.structured_answers import (
    asks_for,
    demands_structure,
    for_structured_model,
    without_structured_models,
    without_suffix,
)

# Adds an answer length to OpenAI requests that state none.
#
# In a real engine, the model decides when an answer ends, at the latest at the end of the context. The
# simulated engine cannot, and refuses such a request (Dynamo 1.6.1: "`max_tokens` is required by the mocker
# worker").
# Other requests are unchanged.

#: Fields that state the length, per path. The first field is the one that is added.
_LENGTH_FIELDS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "/v1/completions": ("max_tokens",),
        "/v1/chat/completions": ("max_completion_tokens", "max_tokens"),
        "/v1/responses": ("max_output_tokens",),
    }
)


def with_answer_length(path: str, body: bytes, tokens: int) -> bytes:
    """Return the body of a request, with an answer length if it lacks a required one.

    path: Path of the request, without its query.
    body: Its body. A body that is not a JSON object is returned unchanged, and the frontend refuses it.
    tokens: The length to add.
    """
    fields = _LENGTH_FIELDS.get(path)
    if fields is None:
        return body
    try:
        request = json.loads(body)
    except (ValueError, RecursionError):
        return body
    if not isinstance(request, dict) or any(request.get(field) is not None for field in fields):
        return body
    return json.dumps({**request, fields[0]: tokens}).encode()


def fitting_length(refusal: bytes, tokens: int) -> int | None:
    """Return how much of an added answer length fits the context, if the frontend refused it as too long.

    refusal: Body of the frontend's response. It states the limit and the tokens of prompt and answer together
        (``details`` of type ``context_length``, Dynamo 1.6.1).
    tokens: The length that was added.
    Returns: A positive length. None for another refusal, or if the prompt leaves no token.
    """
    try:
        details = json.loads(refusal)["details"]
        left = tokens - (details["actual"] - details["limit"])
    except (ValueError, KeyError, TypeError):
        return None
    return left if details.get("type") == "context_length" and left > 0 else None


_LOOPBACK = "127.0.0.1"
_MODELS = "/v1/models"


@dataclass(frozen=True, slots=True)
class Route:
    """Where the requests of one listening socket go."""

    targets: tuple[tuple[int, float], ...]
    """Ports with their weights, which are positive."""
    answer_tokens: int
    """Answer length for requests that state none."""
    images: ImageLimits | None = TEXT_ALONE
    """Limits on the images in requests, which become words. None if the engines read images."""
    engines: str = SIMULATED
    """Kind of the engines, for a header of each response."""
    address: str = _LOOPBACK
    """Loopback address of the targets."""
    pages: tuple[str, ...] = ()
    """The only paths that are forwarded, with the method GET. All if it is empty."""
    structured: tuple[int, ...] = ()
    """Targets whose engines answer with a structure under another name of the model."""
    aliases: tuple[str, ...] = ()
    """Further names of the model, which `structured` targets answer under that other name too."""


def turns(targets: Sequence[tuple[int, float]]) -> Iterator[int]:
    """Yield targets in proportion to their weights, spread evenly and always in the same order.

    targets: Targets with their weights.
    Yields: The next target.
    """
    total = sum(weight for _, weight in targets)
    standing = dict.fromkeys((target for target, _ in targets), 0.0)
    while True:
        for target, weight in targets:
            standing[target] += weight
        chosen = max(standing, key=standing.__getitem__)
        standing[chosen] -= total
        yield chosen


async def serve(listener: socket.socket, route: Route, session: ClientSession) -> None:
    """Start serving on a socket. Each request goes to the next target.

    listener: The listening socket.
    route: Targets and limits of its requests.
    session: For the requests to the targets.
    """
    targets = turns(route.targets)

    async def handle(request: web.Request) -> web.StreamResponse:
        if route.pages and (request.method != "GET" or request.path not in route.pages):
            raise web.HTTPNotFound
        body = await request.read()
        try:
            if route.images is not None:
                body = with_images_as_words(request.path, body, route.images)
        except ImageRefusedError as refusal:
            return _error(web.HTTPBadRequest, str(refusal), "invalid_request_error", "invalid_image")
        return await _forward(request, body, next(targets), route, session)

    runner = application(handle)
    await runner.setup()
    await web.SockSite(runner, listener).start()


async def _forward(
    request: web.Request, body: bytes, port: int, route: Route, session: ClientSession
) -> web.StreamResponse:
    """Send a request to a frontend, and return its response.

    If the answer length that is added here exceeds the context, the frontend refuses the request. Then it is
    sent again with the length that fits, because a real engine answers to the end of the context.
    """
    rewritten: Callable[[bytes], bytes] | None = None
    if port in route.structured and demands_structure(request.path, body):
        body, rewritten = for_structured_model(body), without_suffix
    elif port in route.structured and request.path == _MODELS:
        rewritten = without_structured_models
    elif port in route.structured and asks_for(route.aliases, body):
        rewritten = without_suffix
    unread = ("accept-encoding",) if rewritten else ()  # a compressed answer could not be rewritten
    sent = with_answer_length(request.path, body, route.answer_tokens)
    try:
        answer = await forward(request, sent, (route.address, port), session, without=unread)
        if sent != body and answer.status == web.HTTPBadRequest.status_code:
            fitting = fitting_length(await answer.read(), route.answer_tokens)
            if fitting is not None:
                sent = with_answer_length(request.path, body, fitting)
                answer = await forward(request, sent, (route.address, port), session, without=unread)
    except (ClientError, OSError) as error:
        return _error(
            web.HTTPBadGateway, f"the frontend does not answer: {error}", "server_error", "bad_gateway"
        )
    async with answer:
        return await carry(answer, request, added=((ENGINE_HEADER, route.engines),), rewritten=rewritten)


def _error(kind: type[web.HTTPError], message: str, group: str, code: str) -> web.Response:
    """Return an error in the format of the OpenAI API."""
    content = {"error": {"message": message, "type": group, "param": None, "code": code}}
    return web.json_response(content, status=kind.status_code)


async def main(arguments: str) -> None:
    """Serve every route until the process ends.

    arguments: The routes as a JSON list.
    """
    async with forwarding_session() as session:
        for entry in json.loads(arguments):
            targets = tuple((port, weight) for port, weight in entry["targets"])
            images = entry["images"]
            limits = images and ImageLimits(images["perRequest"], images["tokens"], tuple(images["domains"]))
            route = Route(
                targets,
                entry["answerTokens"],
                limits,
                entry["engines"],
                entry["address"],
                tuple(entry["pages"]),
                tuple(entry["structured"]),
                tuple(entry["aliases"]),
            )
            await serve(socket.socket(fileno=entry["listener"]), route, session)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
