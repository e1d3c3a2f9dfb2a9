"""Forwards an HTTP request and its response as they are, for the proxies of a local run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping

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

Header = tuple[str, str]
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

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
#: Headers about the body, which a proxy reads and sends again.
_OF_THE_BODY = frozenset({"content-length", "expect"})
#: Headers that the client library would add although the client did not send them.
_UNASKED = ("Accept", "Accept-Encoding", "Content-Type", "User-Agent")


def application(handler: Handler) -> web.AppRunner:
    """Return a server that passes every request to a handler.

    If a client disconnects, its handler is cancelled, and with it the request that it forwards.

    handler: Answers a request.
    """
    whole = web.Application(client_max_size=0)  # no limit: the server behind the proxy limits the size
    whole.router.add_route("*", "/{path:.*}", handler)
    return web.AppRunner(whole, access_log=None, auto_decompress=False, handler_cancellation=True)


def forwarding_session(*, keeps_connections: bool = True) -> ClientSession:
    """Return a session that sends each request once, adds nothing to it and sets no timeout.

    keeps_connections: Whether a connection is used for several requests. If its server closes it meanwhile, a
        request fails.
    """
    return ClientSession(
        connector=TCPConnector(limit=0, force_close=not keeps_connections),
        cookie_jar=DummyCookieJar(),
        timeout=ClientTimeout(total=None),  # a stream may take long; the client sets the timeout
        auto_decompress=False,
        skip_auto_headers=_UNASKED,
        middlewares=(_once,),
    )


def passed_on(headers: Mapping[str, str]) -> list[Header]:
    """Return the headers of a message that are forwarded.

    headers: The received headers. A name may occur more than once.
    """
    named = {
        word.strip().lower()
        for name, value in headers.items()
        if name.lower() == "connection"
        for word in value.split(",")
    }
    return [(name, value) for name, value in headers.items() if name.lower() not in _HOP_BY_HOP | named]


async def forward(
    request: web.Request,
    body: bytes,
    address: tuple[str, int],
    session: ClientSession,
    *,
    without: Iterable[str] = (),
    added: Iterable[Header] = (),
) -> ClientResponse:
    """Send a request to another server, and return the response once its headers are there.

    request: The request of the client.
    body: The body to send.
    address: Host and port of the server.
    session: A `forwarding_session`.
    without: Names of further headers that are not forwarded, in lower case.
    added: Headers to add.
    Raises ClientError or OSError if the server does not answer.
    """
    host, port = address
    dropped = _OF_THE_BODY | set(without)
    return await session.request(
        request.method,
        URL.build(
            scheme="http",
            host=host,
            port=port,
            path=request.rel_url.raw_path,
            query_string=request.rel_url.raw_query_string,
            encoded=True,
        ),
        headers=[*(each for each in passed_on(request.headers) if each[0].lower() not in dropped), *added],
        data=body or None,
        allow_redirects=False,
    )


async def carry(
    answer: ClientResponse,
    request: web.Request,
    *,
    added: Iterable[Header] = (),
    rewritten: Callable[[bytes], bytes] | None = None,
) -> web.StreamResponse:
    """Forward a response as it arrives, at the client's pace.

    answer: The response of the other server.
    rewritten: Changes the body, which is passed on line by line. None if it stays.
    """
    headers = [
        (name, value)
        for name, value in passed_on(answer.headers)
        if rewritten is None or name.lower() not in _OF_THE_BODY
    ]
    response = web.StreamResponse(status=answer.status, reason=answer.reason, headers=[*headers, *added])
    await response.prepare(request)
    try:
        if answer.status == web.HTTPBadRequest.status_code:  # it may have been read before
            body = await answer.read()
            await response.write(rewritten(body) if rewritten else body)
        begun = b""
        async for chunk in answer.content.iter_any():
            if rewritten is None:
                await response.write(chunk)
                continue
            lines, end, begun = (begun + chunk).rpartition(b"\n")
            if end:
                await response.write(rewritten(lines + end))
        if rewritten and begun:
            await response.write(rewritten(begun))
    except ClientError:  # an interrupted response must not look complete
        if request.transport is not None:
            request.transport.close()
    return response


async def _once(request: ClientRequest, send: ClientHandlerType) -> ClientResponse:
    """Send a request once. The client library would send some again if the connection is lost."""
    try:
        return await send(request)
    except (ClientOSError, ServerDisconnectedError) as error:
        raise ClientError(str(error)) from error
