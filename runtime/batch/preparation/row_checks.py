"""Checks the rows of a job with a template. Every row becomes a request before any money is spent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

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
from batch.preparation.prompt_renderer import PromptRenderer
from inference_contracts.batch_body_fields import IMAGES_PATH
from inference_contracts.prompt_template import RenderingError
from inference_contracts.request_limits import RequestLimits

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
