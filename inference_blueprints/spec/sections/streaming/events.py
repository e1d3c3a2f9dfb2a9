"""Rules on the events and templates of streaming jobs: the examples pass through both."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from importlib import import_module
from typing import Any

from inference_blueprints.spec.invalid_values import usable
from inference_blueprints.spec.rule import rule
from inference_blueprints.spec.types import Spec, StreamingJob
from inference_blueprints.spec.wording import Path, quote, suggestion
from inference_contracts.batch_limits import BYTES_PER_TOKEN
from inference_contracts.errors import Finding

_TEMPLATES = "inference_contracts.prompt_template"


@rule
def examples_are_events(spec: Spec) -> Iterator[Finding]:
    """Check that the example events of a streaming job have a key, a time and, if it is named, an id."""
    for index, job in usable(spec.streaming):
        for place, example in usable(job.events.examples):
            path: Path = ("spec", "streaming", index, "events", "examples", place)
            yield from (Finding((*path, *below), message) for below, message in _faults(job, example))


@rule
def template_renders_the_examples(spec: Spec) -> Iterator[Finding]:
    """Check that the template of a streaming job is valid, and that it renders the example events."""
    for index, job in usable(spec.streaming):
        path: Path = ("spec", "streaming", index, "prompt", "template")
        # Jinja2 takes a tenth of a second to import, and few blueprints have a template.
        templates = import_module(_TEMPLATES)
        fault = templates.template_fault(job.prompt.template)
        if fault:
            yield Finding(path, f"is not a template that streaming can use: {fault}; correct it")
            continue
        maximum = job.prompt.max_input_tokens * BYTES_PER_TOKEN - len(job.prompt.system or "")
        values = {"events": job.events.examples, "session": _session(job)}
        try:
            text = templates.Prompts(job.prompt.template, max_characters=max(1, maximum)).render(values)
        except templates.RenderingError as error:
            message = f"does not render the events of 'events.examples': {error}; correct one of them"
            yield Finding(path, message)
            continue
        if not text.strip():
            yield Finding(path, "renders the events of 'events.examples' to nothing; use 'events'")


def _faults(job: StreamingJob, example: Mapping[str, Any]) -> Iterator[tuple[Path, str]]:
    """Yield what is wrong with an event, with the path below it."""
    names, session = list(example), job.session
    for label, field in (("key", session.key), ("time", session.time), ("id", session.id)):
        if field is not None and field not in example:
            message = (
                f"has no field {quote(field)}, which is session.{label}{suggestion(field, names)}; add it, "
                "or name another field"
            )
            yield (), message
    key = example.get(session.key, "-")
    if not isinstance(key, str) or not key:
        yield (session.key,), f"got {quote(key)}, the key of a session is a text that is not empty"
    if session.time in example and not _is_time(example[session.time]):
        message = (
            f"got {quote(example[session.time])}, expected milliseconds since 1970 or ISO 8601 such as "
            "'2026-11-23T08:00:00Z'"
        )
        yield (session.time,), message


def _is_time(value: object) -> bool:
    if isinstance(value, str):
        try:
            return datetime.fromisoformat(value).tzinfo is not None
        except ValueError:
            return False
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _session(job: StreamingJob) -> str:
    return str(job.events.examples[0].get(job.session.key, ""))
