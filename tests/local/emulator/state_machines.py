"""State machines in JSONata, made and watched on the emulator."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable
from typing import Any

ROLE = "arn:aws:iam::123456789012:role/states"
TOKEN = "{% $states.context.Task.Token %}"  # noqa: S105 - an expression
PATIENCE_SECONDS = 240.0


class Machines:
    """Starts executions of definitions."""

    def __init__(self, client: Callable[[str], Any]) -> None:
        self.states = client("stepfunctions")
        self.sqs = client("sqs")
        self._s3 = client("s3")

    def start(self, states: dict[str, Any], given: dict[str, Any]) -> str:
        """Start an execution that begins with the first of the states, and return its ARN."""
        definition = {"QueryLanguage": "JSONata", "StartAt": next(iter(states)), "States": states}
        machine = self.states.create_state_machine(
            name=uuid.uuid4().hex, definition=json.dumps(definition), roleArn=ROLE
        )
        execution = self.states.start_execution(
            stateMachineArn=machine["stateMachineArn"], input=json.dumps(given)
        )
        arn: str = execution["executionArn"]
        return arn

    def ended(self, execution: str) -> dict[str, Any]:
        """Wait for the end of an execution, and return what it is."""

        def description() -> dict[str, Any] | None:
            found: dict[str, Any] = self.states.describe_execution(executionArn=execution)
            return None if found["status"] == "RUNNING" else found

        found: dict[str, Any] = eventually(description)
        return found

    def queue(self) -> str:
        url: str = self.sqs.create_queue(QueueName=uuid.uuid4().hex)["QueueUrl"]
        return url

    def received(self, queue: str, count: int = 1) -> list[dict[str, Any]]:
        """Wait until so many messages have come to a queue, and return their bodies, each once."""
        messages: list[dict[str, Any]] = []

        def all_came() -> bool:
            messages.extend(self._arrived(queue, seconds=1))
            return len(messages) >= count

        eventually(all_came)
        return messages

    def is_silent(self, queue: str, seconds: int = 1) -> bool:
        """Whether no message comes to a queue for a while."""
        return self._arrived(queue, seconds) == []

    def _arrived(self, queue: str, seconds: int) -> list[dict[str, Any]]:
        """Return the bodies of what is in a queue, or comes first within some seconds."""
        answer = self.sqs.receive_message(
            QueueUrl=queue, MaxNumberOfMessages=10, VisibilityTimeout=600, WaitTimeSeconds=seconds
        )
        return [json.loads(message["Body"]) for message in answer.get("Messages", [])]

    def upload(self, lines: list[Any]) -> dict[str, str]:
        """Store JSON Lines, and return where."""
        bucket = uuid.uuid4().hex
        self._s3.create_bucket(
            Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": self._s3.meta.region_name}
        )
        body = "".join(f"{json.dumps(each)}\n" for each in lines)
        self._s3.put_object(Bucket=bucket, Key="items.jsonl", Body=body.encode())
        return {"bucket": bucket, "key": "items.jsonl"}


def eventually(look: Callable[[], Any]) -> Any:
    """Return what is seen as soon as it is not None or empty."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not (seen := look()):
        assert time.monotonic() < deadline, "nothing happened in time"
        time.sleep(0.1)
    return seen


def waiting_task(**fields: Any) -> dict[str, Any]:
    """Return a state that sends its token to the queue of its input and waits."""
    return {
        "Type": "Task",
        "Resource": "arn:aws:states:::sqs:sendMessage.waitForTaskToken",
        "Arguments": {
            "QueueUrl": "{% $states.input.queue %}",
            "MessageBody": {"token": TOKEN, "input": "{% $states.input %}"},
        },
        "End": True,
        **fields,
    }
