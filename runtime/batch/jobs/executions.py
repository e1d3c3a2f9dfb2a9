"""Executions of the state machine: one per attempt at a job, with a unique name."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from botocore.exceptions import ClientError

from batch.jobs.job_table import Job

# Error of the emulator for an execution that has ended. Step Functions itself returns the stop time.
_HAS_ENDED: Final = "ValidationException"
# An operator may redrive an execution in the console. Then it goes on by itself.
_RUNNING: Final = {"RUNNING", "PENDING_REDRIVE"}


@dataclass(frozen=True, slots=True)
class Execution:
    """An execution as DescribeExecution shows it."""

    status: str
    """Such as ``RUNNING`` or ``ABORTED``."""
    input: str
    """JSON document."""
    ended_at: float
    """Seconds since 1970; 0 while it runs."""
    error: str
    cause: str
    """`error`, `cause`: Reason for its end."""

    @property
    def is_running(self) -> bool:
        return self.status in _RUNNING

    def event(self) -> Mapping[str, Any]:
        """Return the part of the event of its end that the function `close` reads."""
        detail = {"status": self.status, "input": self.input, "error": self.error, "cause": self.cause}
        return {"detail": detail}


class Executions:
    def __init__(self, client: Any, state_machine: str) -> None:
        self._client = client
        self._state_machine = state_machine

    def start(self, job: Job) -> None:
        """Start the current attempt at a job. A repeated call changes nothing."""
        try:
            self._client.start_execution(
                stateMachineArn=self._state_machine,
                name=_name(job),
                input=json.dumps({"job": job.id, "attempt": job.attempt}),
            )
        except ClientError as error:
            # Step Functions reserves the name for 90 days after the execution has ended.
            if error.response["Error"]["Code"] != "ExecutionAlreadyExists":
                raise

    def stop(self, job: Job, *, cause: str) -> bool:
        """Stop the current attempt at a job if it is running, and return whether it ever started.

        cause: Reason, shown in Step Functions.
        """
        try:
            self._client.stop_execution(executionArn=self.arn(job), error="Cancelled", cause=cause)
        except ClientError as error:
            code = error.response["Error"]["Code"]
            if code not in {"ExecutionDoesNotExist", _HAS_ENDED}:
                raise
            return bool(code == _HAS_ENDED)
        return True

    def describe(self, job: Job) -> Execution | None:
        """Return the execution of the current attempt at a job; None if it is unknown.

        Step Functions shows a new execution only after a moment
        (https://docs.aws.amazon.com/step-functions/latest/apireference/API_DescribeExecution.html).
        """
        try:
            found = self._client.describe_execution(executionArn=self.arn(job))
        except ClientError as error:
            if error.response["Error"]["Code"] != "ExecutionDoesNotExist":
                raise
            return None
        ended = found.get("stopDate")
        return Execution(
            status=found["status"],
            input=found["input"],
            ended_at=ended.timestamp() if ended else 0.0,
            error=found.get("error", ""),
            cause=found.get("cause", ""),
        )

    def arn(self, job: Job) -> str:
        """Return the ARN of the current attempt at a job."""
        return f"{self._state_machine.replace(':stateMachine:', ':execution:')}:{_name(job)}"


def _name(job: Job) -> str:
    return f"{job.id}-{job.attempt}"
