"""The state machine that runs jobs: an attempt at a job is one execution, whose name nobody else can have."""

from __future__ import annotations

import json
from typing import Any, Final

from botocore.exceptions import ClientError

from batch.jobs.job import Job

# What an emulation says of an execution that has ended; Step Functions itself just says when it stopped.
_HAS_ENDED: Final = "ValidationException"


class Executions:
    """Executions of the state machine.

    Parameters
    ----------
    client
        A boto3 client of Step Functions.
    state_machine
        Its ARN.
    """

    def __init__(self, client: Any, state_machine: str) -> None:
        self._client = client
        self._state_machine = state_machine

    def start(self, job: Job) -> None:
        """Start the present attempt at a job; starting it again changes nothing.

        Parameters
        ----------
        job
            The job.
        """
        try:
            self._client.start_execution(
                stateMachineArn=self._state_machine,
                name=_name(job),
                input=json.dumps({"job": job.id, "attempt": job.attempt}),
            )
        except ClientError as error:
            # The name is known for 90 days after its execution has ended.
            if error.response["Error"]["Code"] != "ExecutionAlreadyExists":
                raise

    def stop(self, job: Job, *, cause: str) -> bool:
        """Stop the present attempt at a job, if it has not ended; return whether it ever began.

        Parameters
        ----------
        job
            The job.
        cause
            Why, for those who look at the execution.
        """
        try:
            self._client.stop_execution(executionArn=self.arn(job), error="Cancelled", cause=cause)
        except ClientError as error:
            code = error.response["Error"]["Code"]
            if code not in {"ExecutionDoesNotExist", _HAS_ENDED}:
                raise
            return bool(code == _HAS_ENDED)
        return True

    def arn(self, job: Job) -> str:
        """Return the ARN of the present attempt at a job.

        Parameters
        ----------
        job
            The job.
        """
        return f"{self._state_machine.replace(':stateMachine:', ':execution:')}:{_name(job)}"


def _name(job: Job) -> str:
    """Return the name of an execution."""
    return f"{job.id}-{job.attempt}"
