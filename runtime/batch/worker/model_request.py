"""Builds requests from lines: takes the body of the line, or renders the job's template."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson

from batch.contracts.job_description import JobDescription
from batch.contracts.shard import ShardLine
from batch.rendering import Prompts, RenderingError, prompt_parts
from batch.worker.image_loader import HeldImages, Images

_CHAT: Final = "/v1/chat/completions"
#: Name of the prompt field in the bodies of the other endpoints that have one.
_PROMPT_FIELDS: Final = {"/v1/completions": "prompt", "/v1/embeddings": "input"}


class InvalidLineError(Exception):
    """No request can be made from a line. The message names the reason."""


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """The request of a line. Retries send it unchanged.

    Parameters
    ----------
    idempotency_key
        Equal for equal requests of a job, and different for all others.
    images
        Images that hold memory for this request.
    """

    body: bytes
    idempotency_key: str
    images: HeldImages | None = None


class Requests:
    """Makes the requests of a job.

    Raises
    ------
    RenderingError
        If the job's template is not valid, or not for the job's endpoint.
    """

    def __init__(self, description: JobDescription, images: Images, *, most_characters: int) -> None:
        self._description = description
        self._images = images
        template = description.template
        if template and description.endpoint != _CHAT:
            if description.endpoint not in _PROMPT_FIELDS:
                allowed = ", ".join([_CHAT, *_PROMPT_FIELDS])
                raise RenderingError(f"endpoint {description.endpoint} has no prompt; allowed are {allowed}")
            if template.image_fields:
                raise RenderingError(f"images are allowed only for {_CHAT}, not for {description.endpoint}")
        self._prompts = Prompts(template.text, most_characters=most_characters) if template else None
        self._fields = template.image_fields if template else ()
        self._parameters = template.parameters if template else {}

    async def make(self, line: ShardLine) -> ModelRequest:
        """Make the request of a line. Its images hold memory until `let_go`.

        Raises
        ------
        InvalidLineError
            If it has neither a body nor a row.
        RenderingError
            If its row does not fit the template.
        ImageError
            If an image of the row cannot be sent.
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

    def let_go(self, request: ModelRequest) -> None:
        """Release the memory of a request.

        Parameters
        ----------
        request
            A request of `make`. It must not be sent again.
        """
        if request.images is not None:
            self._images.let_go(request.images)

    def _seal(self, line: ShardLine, values: Mapping[str, Any], images: HeldImages | None) -> ModelRequest:
        body = orjson.dumps(values)
        names = orjson.dumps([self._description.job, line.custom_id])
        return ModelRequest(body, hashlib.sha256(names + b"\n" + body).hexdigest(), images)
