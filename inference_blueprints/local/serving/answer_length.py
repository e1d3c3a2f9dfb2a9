"""Gives OpenAI requests that leave the length of the answer open a length.

A real engine ends an answer when the model does. The simulated one cannot know, and refuses such a request
(Dynamo 1.6.1: "`max_tokens` is required by the mocker worker"). Everything else passes unchanged.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

CHUNK_BYTES = 65536
_LARGEST_BODY_BYTES = 16 * 2**20
_END_OF_HEAD = b"\r\n\r\n"
#: Fields that state the length, by path; the first is the one that is added.
_LENGTH_FIELDS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "/v1/completions": ("max_tokens",),
        "/v1/chat/completions": ("max_completion_tokens", "max_tokens"),
        "/v1/responses": ("max_output_tokens",),
    }
)


@dataclass(frozen=True, slots=True)
class RequestHead:
    """The first lines of an HTTP/1.1 request.

    Parameters
    ----------
    lines
        Request line and header lines, as they came.
    """

    lines: tuple[bytes, ...]

    @property
    def path(self) -> str:
        """Path of the target, without its query."""
        words = self.lines[0].decode("latin-1").split(" ")
        return words[1].split("?")[0] if len(words) > 1 else ""

    def header(self, name: str) -> str | None:
        """Return the value of a header, or None when it is not there."""
        for line in self.lines[1:]:
            key, _, value = line.decode("latin-1").partition(":")
            if key.strip().lower() == name:
                return value.strip()
        return None

    def with_length(self, length: int) -> bytes:
        """Return the head with another Content-Length."""
        kept = [line for line in self.lines if not line.lower().startswith(b"content-length:")]
        return b"\r\n".join([*kept, b"Content-Length: %d" % length]) + _END_OF_HEAD


def with_answer_length(path: str, body: bytes, tokens: int) -> bytes:
    """Return the body of a request, with a length of the answer if it states none.

    Parameters
    ----------
    path
        Path of the request.
    body
        Its body; one that is not a JSON object is left for the frontend to refuse.
    tokens
        The length.
    """
    try:
        request = json.loads(body)
    except ValueError:
        return body
    fields = _LENGTH_FIELDS[path]
    if not isinstance(request, dict) or any(request.get(field) is not None for field in fields):
        return body
    return json.dumps({**request, fields[0]: tokens}).encode()


async def forward_requests(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, tokens: int) -> None:
    """Carry a client's requests to a frontend until the client ends them.

    Parameters
    ----------
    reader, writer
        From the client, to the frontend.
    tokens
        Length for requests that state none.
    """
    while head := await _read_head(reader, writer):
        length = head.header("content-length") or ""
        small = length.isdigit() and int(length) <= _LARGEST_BODY_BYTES
        if head.path in _LENGTH_FIELDS and small and not head.header("expect"):
            body = await reader.readexactly(int(length))
            changed = with_answer_length(head.path, body, tokens)
            writer.write(head.with_length(len(changed)) + changed)
            await writer.drain()
            continue
        writer.write(b"\r\n".join(head.lines) + _END_OF_HEAD)
        if length or head.header("transfer-encoding") or head.header("upgrade"):
            break  # a body that is not looked at: from here on bytes are bytes
    await carry(reader, writer)


async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy one direction until its end, no faster than the receiver takes it, and pass the end on."""
    while data := await reader.read(CHUNK_BYTES):
        writer.write(data)
        await writer.drain()
    writer.write_eof()


async def _read_head(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> RequestHead | None:
    """Read to the empty line; None, with everything read passed on, when there is no such line."""
    try:
        head = await reader.readuntil(_END_OF_HEAD)
    except asyncio.IncompleteReadError as error:
        writer.write(error.partial)
        return None
    except asyncio.LimitOverrunError:  # the frontend answers to a head of this size, not the relay
        return None
    return RequestHead(tuple(head.removesuffix(_END_OF_HEAD).split(b"\r\n")))
