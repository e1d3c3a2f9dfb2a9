"""Requests from lines: the body as the line has it, or rendered from the job's template."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson

from batch.contracts.description import JobDescription
from batch.contracts.shard import ShardLine
from batch.rendering import Prompts, RenderingError, prompt_parts
from batch.worker.images import HeldImages, Images

_CHAT: Final = "/v1/chat/completions"
#: Where the prompt stands in the bodies of the other endpoints that take one.
_PROMPT_FIELDS: Final = {"/v1/completions": "prompt", "/v1/embeddings": "input"}


class InvalidLineError(Exception):
    """A line of which no request can be made: says why."""


@dataclass(frozen=True, slots=True)
class Request:
    """What is sent for a line, however often.

    Parameters
    ----------
    body
        JSON.
    idempotency_key
        Equal for equal requests of a job, and for no others.
    images
        What it holds of the memory for images.
    """

    body: bytes
    idempotency_key: str
    images: HeldImages | None = None


class Requests:
    """Makes the requests of a job.

    Parameters
    ----------
    description
        The job.
    images
        Reads images.
    most_characters
        The longest prompt.

    Raises
    ------
    RenderingError
        If the job's template is none, or not for the job's endpoint.
    """

    def __init__(self, description: JobDescription, images: Images, *, most_characters: int) -> None:
        self._description = description
        self._images = images
        template = description.template
        if template and description.endpoint != _CHAT:
            if description.endpoint not in _PROMPT_FIELDS:
                allowed = ", ".join([_CHAT, *_PROMPT_FIELDS])
                raise RenderingError(f"endpoint {description.endpoint} takes no prompt; these do: {allowed}")
            if template.image_fields:
                raise RenderingError(f"images are for {_CHAT} alone, not for {description.endpoint}")
        self._prompts = Prompts(template.text, most_characters=most_characters) if template else None
        self._fields = template.image_fields if template else ()
        self._parameters = template.parameters if template else {}

    async def make(self, line: ShardLine) -> Request:
        """Make the request of a line; its images are held until `let_go`.

        Parameters
        ----------
        line
            The line.

        Raises
        ------
        InvalidLineError
            If it has neither a body nor a row.
        RenderingError
            If its row does not fit the template.
        ImageError
            If an image that it names cannot be sent.
        """
        model = {"model": self._description.model}
        if line.body is not None:
            return self._seal(line, {**line.body, **model}, None)
        if line.row is None or self._prompts is None:
            raise InvalidLineError("the line has neither a body nor a row for the job's template")
        prompt = self._prompts.render(line.row)
        if self._description.endpoint != _CHAT:
            field = _PROMPT_FIELDS[self._description.endpoint]
            return self._seal(line, {**self._parameters, **model, field: prompt}, None)
        images = None
        if self._fields:
            images = await self._images.read(line.row, self._fields, self._description.data_prefixes)
        content = prompt_parts(prompt, images.urls if images else ())
        messages = [{"role": "user", "content": content}]
        return self._seal(line, {**self._parameters, **model, "messages": messages}, images)

    def let_go(self, request: Request) -> None:
        """Give back what a request holds.

        Parameters
        ----------
        request
            Of `make`; it is not sent again.
        """
        if request.images is not None:
            self._images.let_go(request.images)

    def _seal(self, line: ShardLine, values: Mapping[str, Any], images: HeldImages | None) -> Request:
        body = orjson.dumps(values)
        names = orjson.dumps([self._description.job, line.custom_id])
        return Request(body, hashlib.sha256(names + b"\n" + body).hexdigest(), images)
