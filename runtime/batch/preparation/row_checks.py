"""Checks the rows of a job with a template. Every row becomes a request before any money is spent."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any, Final

from batch.contracts.request import JobRequest, RequestTemplate
from batch.preparation.line_checks import (
    BadLine,
    CheckedLine,
    checked,
    id_faults,
    limit_faults,
    parameter_faults,
    read_object,
)
from inference_contracts.batch_body_fields import IMAGES_PATH
from inference_contracts.prompt_template import RenderingError
from inference_contracts.request_limits import RequestLimits

# Renders prompts in a child process with limited memory and processor time.
#
# The sandbox of Jinja2 decides what a template may do, but not what it may cost: comparing or printing nested
# lists can take any amount of time and memory inside one instruction. So the operating system limits a
# process that has nothing else to do, no credentials, and no other team's data. Only checking renders
# templates. Workers get the finished bodies.

_PROCESS: Final = "batch.preparation.prompt_process"
#: Time for a child whose socket is closed to end.
_PATIENCE_SECONDS: Final = 10.0


class CostlyTemplateError(Exception):
    """Rendering exceeded a limit of memory or time. No further row is rendered."""


@dataclass(frozen=True, slots=True)
class RenderingLimits:
    """What rendering may cost."""

    memory_bytes: int = 512 * 2**20
    """Address space of the process (``RLIMIT_AS``), with Python and Jinja2 themselves."""
    row_seconds: int = 5
    """Processor time of one row."""
    total_seconds: int = 300
    """Processor time of all rows of a segment (``RLIMIT_CPU``)."""


LIMITS: Final = RenderingLimits()


class PromptRenderer:
    """The template of a job. Close it after use.

    text: Jinja2 template.
    max_characters: Longest prompt.
    limits: What rendering may cost.
    Raises RenderingError if the text is not a valid template, or uses a forbidden feature. Raises
        CostlyTemplateError if compiling it exceeds a limit.
    """

    def __init__(self, text: str, *, max_characters: int, limits: RenderingLimits = LIMITS) -> None:
        self._limits = limits
        own, others = socket.socketpair()
        with others:
            self._process = subprocess.Popen(
                [
                    *(sys.executable, "-m", _PROCESS, str(others.fileno()), str(limits.memory_bytes)),
                    *(str(limits.row_seconds), str(limits.total_seconds)),
                ],
                pass_fds=[others.fileno()],
                stdin=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                # Not the variables of this process: they contain credentials.
                env={"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "MALLOC_ARENA_MAX": "1"},
            )
        self._link = Connection(own.detach())
        try:
            self._ask({"text": text, "most_characters": max_characters})
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End the process."""
        self._link.close()
        self._process.kill()
        self._process.wait()

    def render(self, row: Mapping[str, Any]) -> str:
        """Return the prompt of a row.

        Raises RenderingError if the row does not fit the template. Raises CostlyTemplateError if rendering it
        exceeds a limit.
        """
        return self._ask({"row": row})

    def _ask(self, question: Mapping[str, Any]) -> str:
        """Send a request to the process, and return its answer."""
        try:
            self._link.send_bytes(json.dumps(question).encode())
            answer = json.loads(self._link.recv_bytes())
        except (EOFError, ConnectionError) as error:
            raise CostlyTemplateError(self._ending()) from error
        if "too_costly" in answer:
            raise CostlyTemplateError(answer["too_costly"])
        if "wrong" in answer:
            raise RenderingError(answer["wrong"])
        return str(answer["prompt"])

    def _ending(self) -> str:
        """Return the reason why the process ended."""
        try:
            code = self._process.wait(_PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            return "template: rendering stopped answering"
        limits = self._limits
        if code == -signal.SIGXCPU:
            return f"template: rendering a row takes more than {limits.row_seconds} s of processor time"
        if code == -signal.SIGKILL:
            return (
                f"template: rendering one part of the input takes more than {limits.total_seconds} s of "
                "processor time, or more memory than there is"
            )
        return f"template: rendering ended unexpectedly with code {code}"


_CHAT = "/v1/chat/completions"
_PROMPT_FIELDS = {"/v1/completions": "prompt", "/v1/embeddings": "input", IMAGES_PATH: "prompt"}
_ID_FIELD = "custom_id"
# Most bytes per token that are counted. A longer prompt fits no model.
_CHARACTERS_PER_TOKEN = 16


class RowChecks:
    """Checks the rows of a job. Close it after use.

    request: A job with a template.
    limits: Limits of the model's requests; None if its engine has none.
    Raises RenderingError if the template is invalid, or does not fit the job's endpoint. Raises
        CostlyTemplateError if a limit of memory or time is exceeded, now or at a row.
    """

    def __init__(self, request: JobRequest, limits: RequestLimits | None = None) -> None:
        template = request.template
        if template is None:
            raise RenderingError("template: the job has none")
        faults = [
            *_template_faults(template, request.endpoint),
            *(
                f"template.parameters: {fault.removeprefix('body.')}"
                for fault in limit_faults(template.parameters, limits)
            ),
        ]
        if faults:
            raise RenderingError("; ".join(faults))
        self._request = request
        self._template = template
        maximum = request.limits.request_tokens * _CHARACTERS_PER_TOKEN
        self._prompts = PromptRenderer(template.text, max_characters=maximum)

    def close(self) -> None:
        """End the process that renders."""
        self._prompts.close()

    def check_json(self, content: bytes, place: str) -> CheckedLine | BadLine:
        """Check a row given as a line of JSON.

        place: Name of the row, if it has no ``custom_id``.
        """
        row = read_object(content, "with a value for each field")
        if isinstance(row, BadLine):
            return row
        return self.check(row, place)

    def check(self, row: Mapping[str, Any], place: str) -> CheckedLine | BadLine:
        custom_id = row.get(_ID_FIELD, place)
        faults = [*id_faults(custom_id), *self._image_faults(row)]
        try:
            prompt = self._prompts.render(row)
        except RenderingError as error:
            faults.append(str(error))
        if faults:
            return BadLine(custom_id if isinstance(custom_id, str) else None, tuple(faults))
        images = tuple(str(row[field]) for field in self._template.image_fields)
        return checked(custom_id, self._body(prompt), self._request, images=images)

    def _body(self, prompt: str) -> dict[str, Any]:
        """Return the body of a request, without its images."""
        parameters = {"model": self._request.model, **self._template.parameters}
        if self._request.endpoint != _CHAT:
            return {**parameters, _PROMPT_FIELDS[self._request.endpoint]: prompt}
        return {**parameters, "messages": [{"role": "user", "content": prompt}]}

    def _image_faults(self, row: Mapping[str, Any]) -> Iterator[str]:
        """Iterate over the problems of the images that a row names."""
        prefixes = self._request.data_prefixes
        for field in self._template.image_fields:
            address = row.get(field)
            if address is None or address == "":
                yield f"{field}: has no image; each row needs the template's imageFields"
            elif not isinstance(address, str) or not address.startswith(tuple(prefixes)):
                allowed = ", ".join(prefixes) or "none"
                yield f"{field}: image {str(address)[:200]!r} must lie below the team's prefixes: {allowed}"


def _template_faults(template: RequestTemplate, endpoint: str) -> Iterator[str]:
    """Iterate over the problems of a template other than those of its text."""
    for fault in parameter_faults(template.parameters, endpoint):
        yield f"template.parameters: {fault.removeprefix('body.')}"
    for name in sorted({"messages", *_PROMPT_FIELDS.values()} & set(template.parameters)):
        yield f"template.parameters: {name}: is set by the template; leave it out"
    if template.image_fields and endpoint != _CHAT:
        yield f"template.imageFields: images are allowed only for {_CHAT}; got endpoint {endpoint}"
