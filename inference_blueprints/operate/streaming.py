"""Calls the functions around streaming jobs: the probe, and the redrive of dead letters."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from botocore.config import Config

from inference_blueprints.operate.aws.account import Account, readable_errors
from inference_blueprints.operate.cloudformation.deployed_stacks import stack_outputs
from inference_blueprints.spec.types import Blueprint, StreamingJob
from inference_contracts.errors import UserError
from inference_contracts.streaming_job import JOB_FUNCTIONS_OUTPUT

#: Calls the function with an event and returns its answer.
Call = Callable[[Mapping[str, Any]], Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class LetterChoice:
    """Which dead letters are redriven, and how."""

    reasons: tuple[str, ...]
    """Reasons of the dead letters; empty for all."""
    events: bool
    """Whether events that the job could not read are sent again."""
    dry_run: bool
    """Only count."""
    per_second: float
    """Most requests per second."""
    since_milliseconds: int
    """Leave out dead letters of before; milliseconds since 1970."""
    limit: int | None
    """Most dead letters to look at; None for all."""


@dataclass(slots=True)
class RedriveReport:
    """What became of dead letters."""

    seen: int = 0
    """Dead letters that were looked at."""
    counts: dict[str, Counter[str]] = field(default_factory=dict)
    """Number by reason and outcome."""
    failures: list[str] = field(default_factory=list)
    """Messages of the first that failed."""

    @property
    def failed(self) -> int:
        """Dead letters that failed again or could not be read."""
        return sum(outcomes["failed"] + outcomes["unreadable"] for outcomes in self.counts.values())

    def document(self, *, dry_run: bool) -> dict[str, Any]:
        """Return the report as JSON.

        dry_run: Whether it only counted.
        """
        return {
            "dryRun": dry_run,
            "seen": self.seen,
            "counts": {reason: dict(outcomes) for reason, outcomes in sorted(self.counts.items())},
            "failures": self.failures,
        }


def redrive_letters(
    call: Call, choice: LetterChoice, progress: Callable[[RedriveReport], None]
) -> RedriveReport:
    """Redrive until all dead letters of now have been seen, or the limit is reached.

    call: Calls the function.
    choice: Which dead letters.
    progress: Told after each call.
    """
    report = RedriveReport()
    places: dict[str, Any] = {}
    while True:
        left = None if choice.limit is None else choice.limit - report.seen
        answer = call(
            {
                "reasons": list(choice.reasons),
                "events": choice.events,
                "dryRun": choice.dry_run,
                "perSecond": choice.per_second,
                "sinceMilliseconds": choice.since_milliseconds,
                **({} if left is None else {"limit": left}),
                **places,
            }
        )
        report.seen += answer["seen"]
        for reason, outcomes in answer["counts"].items():
            report.counts.setdefault(reason, Counter()).update(outcomes)
        report.failures += answer["failures"]
        progress(report)
        if answer["done"] or (choice.limit is not None and report.seen >= choice.limit):
            return report
        places = {"start": answer["start"], "end": answer["end"]}


#: Lambda's longest run. A second attempt would call the model twice.
CALL_CONFIG: Final = Config(read_timeout=910, retries={"mode": "standard", "total_max_attempts": 1})


def streaming_job(blueprint: Blueprint, name: str) -> StreamingJob:
    """Return a job of a blueprint. Raises UserError if the blueprint has no such job."""
    jobs = {job.name: job for job in blueprint.spec.streaming}
    if name not in jobs:
        allowed = ", ".join(jobs) or "none: the blueprint has no section `streaming`"
        raise UserError(f"got the job {name}; allowed are {allowed}")
    return jobs[name]


def function_names(account: Account, platform: str) -> Mapping[str, Mapping[str, str]]:
    """Return the names of the functions of each job.

    platform: `metadata.name`.
    Raises UserError if the stack is not deployed.
    """
    outputs = stack_outputs(account, f"{platform}-Streaming", JOB_FUNCTIONS_OUTPUT)
    names: Mapping[str, Mapping[str, str]] = json.loads(outputs[JOB_FUNCTIONS_OUTPUT])
    return names


def call_function(account: Account, name: str, event: Mapping[str, Any]) -> dict[str, Any]:
    """Call a function and return its answer.

    event: What it is called with.
    Raises UserError if the function fails or AWS refuses the call. The message has the reason.
    """
    with readable_errors():
        answer = account.patient_client("lambda", CALL_CONFIG).invoke(
            FunctionName=name, Payload=json.dumps(event).encode()
        )
    content: Any = json.loads(answer["Payload"].read())
    if "FunctionError" in answer:
        reason = content.get("errorMessage") or content.get("errorType") or answer["FunctionError"]
        raise UserError(f"{name}: {reason}; see its log group in CloudWatch")
    found: dict[str, Any] = content
    return found
