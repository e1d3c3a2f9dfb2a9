"""Forwards requests from listening sockets of this machine to frontends inside a network namespace.

A separate program: ``python -m inference_blueprints.targets.local.relay ROUTES``, where the routes are a
JSON list of ``{"listener": FD, "targets": [[PORT, WEIGHT], …], "answerTokens": N, "images": LIMITS}``. A
socket stays in the namespace in which it was created. So this process runs inside the namespace and accepts
connections on sockets that it inherited from outside.
"""

from __future__ import annotations

import asyncio
import json
import socket
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from aiohttp import (
    ClientError,
    ClientHandlerType,
    ClientOSError,
    ClientRequest,
    ClientResponse,
    ClientSession,
    ClientTimeout,
    DummyCookieJar,
    ServerDisconnectedError,
    TCPConnector,
    web,
)
from yarl import URL

from inference_blueprints.measurement.completions.served_models import ENGINE_HEADER, SIMULATED
from inference_blueprints.targets.local.answer_length import fitting_length, with_answer_length
from inference_blueprints.targets.local.image_requests import (
    TEXT_ALONE,
    ImageLimits,
    ImageRefusedError,
    with_images_as_words,
)

_LOOPBACK = "127.0.0.1"
#: Headers that concern one connection and not the message (RFC 9110, section 7.6.1).
_HOP_BY_HOP = frozenset(
    {
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
#: Headers about the body, which the relay reads and sends again.
_OF_THE_BODY = frozenset({"content-length", "expect"})
#: Headers that the client library would add although the client did not send them.
_UNASKED = ("Accept", "Accept-Encoding", "Content-Type", "User-Agent")


@dataclass(frozen=True, slots=True)
class Route:
    """Where the requests of one listening socket go.

    Parameters
    ----------
    targets
        Ports with their weights, which are positive.
    answer_tokens
        Answer length for requests that state none.
    images
        Limits on the images in requests, which become words. None if the engines read images.
    engines
        Kind of the engines, for a header of each response.
    address
        Loopback address of the targets.
    pages
        The only paths that are forwarded, with the method GET. All if it is empty.
    """

    targets: tuple[tuple[int, float], ...]
    answer_tokens: int
    images: ImageLimits | None = TEXT_ALONE
    engines: str = SIMULATED
    address: str = _LOOPBACK
    pages: tuple[str, ...] = ()


def turns(targets: Sequence[tuple[int, float]]) -> Iterator[int]:
    """Yield targets in proportion to their weights, spread evenly and always in the same order.

    Parameters
    ----------
    targets
        Targets with their weights.

    Yields
    ------
    int
        The next target.
    """
    total = sum(weight for _, weight in targets)
    standing = dict.fromkeys((target for target, _ in targets), 0.0)
    while True:
        for target, weight in targets:
            standing[target] += weight
        chosen = max(standing, key=standing.__getitem__)
        standing[chosen] -= total
        yield chosen


def passed_on(headers: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return the headers of a message that are forwarded.

    Parameters
    ----------
    headers
        The received headers. A name may occur more than once.
    """
    named = {
        word.strip().lower()
        for name, value in headers.items()
        if name.lower() == "connection"
        for word in value.split(",")
    }
    return [(name, value) for name, value in headers.items() if name.lower() not in _HOP_BY_HOP | named]


async def serve(listener: socket.socket, route: Route, session: ClientSession) -> None:
    """Start serving on a socket. Each request goes to the next target.

    Parameters
    ----------
    listener
        The listening socket.
    route
        Targets and limits of its requests.
    session
        For the requests to the targets.
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

    application = web.Application(client_max_size=0)  # no limit: the frontend limits the size
    application.router.add_route("*", "/{path:.*}", handle)
    # If a client disconnects, its request to the frontend is cancelled too.
    runner = web.AppRunner(application, access_log=None, auto_decompress=False, handler_cancellation=True)
    await runner.setup()
    await web.SockSite(runner, listener).start()


async def _forward(
    request: web.Request, body: bytes, port: int, route: Route, session: ClientSession
) -> web.StreamResponse:
    """Send a request to a target, and return its response.

    If the answer length that is added here exceeds the context, the frontend refuses the request. Then it is
    sent again with the length that fits, because a real engine answers to the end of the context.
    """
    sent = with_answer_length(request.path, body, route.answer_tokens)
    try:
        answer = await _send(request, sent, port, route.address, session)
        if sent != body and answer.status == web.HTTPBadRequest.status_code:
            fitting = fitting_length(await answer.read(), route.answer_tokens)
            if fitting is not None:
                sent = with_answer_length(request.path, body, fitting)
                answer = await _send(request, sent, port, route.address, session)
    except (ClientError, OSError) as error:
        return _bad_gateway(error)
    async with answer:
        return await _carry(answer, request, route.engines)


async def _send(
    request: web.Request, body: bytes, port: int, address: str, session: ClientSession
) -> ClientResponse:
    """Send a request to a target."""
    return await session.request(
        request.method,
        URL.build(
            scheme="http",
            host=address,
            port=port,
            path=request.rel_url.raw_path,
            query_string=request.rel_url.raw_query_string,
            encoded=True,
        ),
        headers=[each for each in passed_on(request.headers) if each[0].lower() not in _OF_THE_BODY],
        data=body or None,
        allow_redirects=False,
    )


async def _carry(answer: ClientResponse, request: web.Request, engines: str) -> web.StreamResponse:
    """Forward a response as it arrives, at the client's pace, and add the header with the engine."""
    headers = [*passed_on(answer.headers), (ENGINE_HEADER, engines)]
    response = web.StreamResponse(status=answer.status, reason=answer.reason, headers=headers)
    await response.prepare(request)
    try:
        if answer.status == web.HTTPBadRequest.status_code:  # it may have been read before
            await response.write(await answer.read())
        async for chunk in answer.content.iter_any():
            await response.write(chunk)
    except ClientError:  # an interrupted response must not look complete
        if request.transport is not None:
            request.transport.close()
    return response


def _bad_gateway(error: Exception) -> web.Response:
    """Return the response for a frontend that does not answer."""
    return _error(web.HTTPBadGateway, f"the frontend does not answer: {error}", "server_error", "bad_gateway")


def _error(kind: type[web.HTTPError], message: str, group: str, code: str) -> web.Response:
    """Return an error in the format of the OpenAI API."""
    content = {"error": {"message": message, "type": group, "param": None, "code": code}}
    return web.json_response(content, status=kind.status_code)


async def _once(request: ClientRequest, send: ClientHandlerType) -> ClientResponse:
    """Send a request once. The client library would send some again if the connection is lost."""
    try:
        return await send(request)
    except (ClientOSError, ServerDisconnectedError) as error:
        raise ClientError(str(error)) from error


async def main(arguments: str) -> None:
    """Serve every route until the process ends.

    Parameters
    ----------
    arguments
        The routes as a JSON list.
    """
    async with ClientSession(
        connector=TCPConnector(limit=0),
        cookie_jar=DummyCookieJar(),
        timeout=ClientTimeout(total=None),  # a stream may take long; the client sets the timeout
        auto_decompress=False,
        skip_auto_headers=_UNASKED,
        middlewares=(_once,),
    ) as session:
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
            )
            await serve(socket.socket(fileno=entry["listener"]), route, session)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
