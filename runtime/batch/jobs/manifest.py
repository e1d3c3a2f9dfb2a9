"""A manifest: one object in S3 that describes a job.

.. code-block:: json

   {"inputs": ["s3://search-data/prompts/2026-11-21.jsonl"],
    "endpoint": "/v1/chat/completions",
    "deadlineHours": 12, "priority": 20, "budgetUsd": 50,
    "template": {"text": "Summarise: {{ text }}", "imageFields": ["photo"],
                 "parameters": {"max_tokens": 200}},
    "signal": "product-captions",
    "metadata": {"run": "nightly"}}

Only `inputs` is required. The queue and team come from the key prefix of the manifest, or from the schedule
that names it. `queue` and `model` may be repeated for readers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, cast, get_args

from batch.contracts.request import Input, InputFormat, RequestTemplate
from batch.jobs.fields import Fields, read_object
from batch.jobs.job_table import JobError
from inference_contracts.batch_configuration import BatchTeam, DeclaredSignal, Queue
from inference_contracts.batch_limits import MIN_DEADLINE_HOURS
from inference_contracts.units import SECONDS_PER_HOUR

# Checks the signal that a job names: its team must be allowed to write it.

#: Answers of other API paths are not text.
_WITH_TEXT: Final = ("/v1/chat/completions", "/v1/completions")


def read_signal(
    fields: Fields, signals: Mapping[str, DeclaredSignal], *, endpoint: str
) -> DeclaredSignal | None:
    """Return the signal of a job; None if it names none, or an invalid one, which is noted.

    fields: Fields of the submission. The field ``signal`` names the signal.
    signals: Signals that the job's team may write, by name.
    endpoint: API path of every line of the job.
    """
    name = fields.text("signal", default="")
    if not name:
        return None
    if name not in signals:
        allowed = f"one of {', '.join(signals)}" if signals else "left out: your team has no signal"
        fields.wrong("signal", f"got {name[:80]}, must be {allowed}")
        return None
    if endpoint not in _WITH_TEXT:
        fields.wrong(
            "signal",
            f"answers of {endpoint} are not text; a signal takes answers of {' and '.join(_WITH_TEXT)}",
        )
        return None
    return signals[name]


#: Formats whose lines may be complete requests.
LINES: Final = ("jsonl",)
#: The same for every queue. Each team has its own highest priority.
MIN_PRIORITY: Final = 0
_LONGEST_TEMPLATE: Final = 256 * 1024
_MAX_INPUTS: Final = 1000
_INPUT: Final = r"s3://([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])/(.{1,1024})"


@dataclass(frozen=True, slots=True)
class JobManifest:
    """A manifest, checked against its queue and team."""

    inputs: tuple[Input, ...]
    """Inputs, in order."""
    endpoint: str
    """API path of every line."""
    priority: int
    deadline_hours: float
    """Hours until the deadline."""
    budget_usd: float
    """Cost limit, in dollars."""
    skip_invalid: bool = False
    """Whether valid lines run although others are invalid."""
    idempotency_key: str = ""
    """Manifests with the same key are one job. If empty, the object itself is the key."""
    template: RequestTemplate | None = None
    """Rules to turn rows into requests; None if lines have bodies."""
    signal: DeclaredSignal | None = None
    """Signal that the answers are also published to; None if they go only to files."""
    metadata: Mapping[str, str] = field(default_factory=dict)
    """The team's own notes."""
    output_seconds: int | None = None
    """Lifetime of the job's files, in seconds; None for the longest that the platform allows."""
    accept_late: bool = False
    """Whether the job runs although it is expected to miss its deadline."""

    @property
    def completion_window(self) -> str:
        """Hours until the deadline as the API writes them, such as ``24h``."""
        return f"{self.deadline_hours:g}h"

    def expires_at(self, submitted_at: int) -> int:
        """Return the deadline of a job, in seconds since 1970 as the time of its submission."""
        return submitted_at + round(self.deadline_hours * SECONDS_PER_HOUR)


def unread_manifest(queue: Queue) -> JobManifest:
    """Return what is known of the manifest of a queue if it cannot be read."""
    return JobManifest(
        inputs=(),
        endpoint=queue.endpoints[0],
        priority=queue.priority,
        deadline_hours=queue.deadline_hours,
        budget_usd=0,
    )


def requested_manifest(
    options: Fields,
    *,
    queue: Queue,
    team: BatchTeam,
    signals: Mapping[str, DeclaredSignal],
    inputs: tuple[Input, ...],
    endpoint: str,
    hours: float,
    metadata: Mapping[str, str],
    output_seconds: int | None,
) -> JobManifest:
    """Return the manifest of a request to the API, and note the problems of its options.

    options: The metadata of the request, which hold what OpenAI's API has no fields for.
    signals: Signals that the team may write, by name.
    hours: Hours until the deadline as requested. The queue's deadline may be earlier.
    """
    max_usd = team.monthly_budget_usd
    return JobManifest(
        inputs=inputs,
        endpoint=endpoint,
        priority=_read_priority(options, queue, team),
        deadline_hours=min(hours, queue.deadline_hours),
        budget_usd=options.number("budget_usd", default=max_usd, minimum=0, maximum=max_usd),
        skip_invalid=options.flag("skip_invalid"),
        accept_late=options.flag("accept_late"),
        signal=read_signal(options, signals, endpoint=endpoint),
        metadata=metadata,
        output_seconds=output_seconds,
    )


def read_manifest(
    text: str | bytes, *, queue: Queue, team: BatchTeam, signals: Mapping[str, DeclaredSignal]
) -> JobManifest:
    """Read and check a manifest.

    queue, team: Queue and team of the job.
    Raises InvalidError if the manifest is invalid. The error names all problems.
    """
    fields = Fields(read_object(text))
    template, template_problems = _template(fields.mapping("template"))
    fields.problems += template_problems
    fields.text("queue", default=queue.name, choices=(queue.name,))
    fields.text("model", default=queue.model, choices=(queue.model,))
    inputs = _inputs(fields, team)
    endpoint = fields.text("endpoint", default=queue.endpoints[0], choices=queue.endpoints)
    manifest = JobManifest(
        inputs=inputs,
        endpoint=endpoint,
        priority=_read_priority(fields, queue, team),
        deadline_hours=fields.number(
            "deadlineHours",
            default=queue.deadline_hours,
            minimum=MIN_DEADLINE_HOURS,
            maximum=queue.deadline_hours,
        ),
        budget_usd=fields.number(
            "budgetUsd", default=team.monthly_budget_usd, minimum=0, maximum=team.monthly_budget_usd
        ),
        skip_invalid=fields.flag("skipInvalid"),
        accept_late=fields.flag("acceptLate"),
        idempotency_key=fields.text("idempotencyKey", default="", longest=255),
        template=template,
        signal=read_signal(fields, signals, endpoint=endpoint),
        metadata=fields.metadata(),
    )
    if template is None and not template_problems:
        for place, each in enumerate(manifest.inputs):
            if each.format not in LINES:
                reason = f".{each.format} holds rows, which need a template; got none"
                fields.wrong(f"inputs[{place}]", reason)
    fields.finish()
    return manifest


def _read_priority(fields: Fields, queue: Queue, team: BatchTeam) -> int:
    """Read the priority of a job: by default the queue's, and never above the team's highest."""
    default = min(queue.priority, team.max_priority)
    maximum = team.max_priority
    return int(fields.number("priority", default=default, minimum=MIN_PRIORITY, maximum=maximum, whole=True))


def _inputs(fields: Fields, team: BatchTeam) -> tuple[Input, ...]:
    """Read the inputs. All of them must lie below the team's data prefixes."""
    addresses = fields.texts("inputs", required=True)
    if len(addresses) > _MAX_INPUTS:
        fields.wrong("inputs", f"has {len(addresses)} entries, at most {_MAX_INPUTS} are allowed")
        return ()
    inputs = (_input(fields, f"inputs[{place}]", address, team) for place, address in enumerate(addresses))
    return tuple(each for each in inputs if each is not None)


def _input(fields: Fields, name: str, address: str, team: BatchTeam) -> Input | None:
    """Read one input; None if it is invalid."""
    match = re.fullmatch(_INPUT, address)
    if match is None:
        fields.wrong(name, f"got {address[:200]}, must be s3://bucket/key")
        return None
    if not address.startswith(team.data_prefixes):
        allowed = ", ".join(team.data_prefixes) or "none: the team has no dataPrefixes"
        fields.wrong(name, f"{address[:200]} lies outside of what team {team.name} may read: {allowed}")
        return None
    ending = match[2].rpartition(".")[2]
    if ending not in get_args(InputFormat):
        fields.wrong(name, f"{address[:200]} must end in one of .{', .'.join(get_args(InputFormat))}")
        return None
    return Input(match[1], match[2], cast(InputFormat, ending))


def _template(values: Mapping[str, object] | None) -> tuple[RequestTemplate | None, Sequence[JobError]]:
    """Read the template, and note its problems."""
    if values is None:
        return None, ()
    fields = Fields(values, prefix="template.")
    template = RequestTemplate(
        text=fields.text("text", longest=_LONGEST_TEMPLATE),
        image_fields=fields.texts("imageFields", required=False),
        parameters=fields.mapping("parameters") or {},
    )
    fields.close()
    return template, fields.problems
