"""The runbook's commands are AWS's own, find the stack's resources, and do in an emulation what they say."""

from __future__ import annotations

import json
import re
import shlex

import boto3
import jmespath
import pytest

from inference_blueprints.resources import root
from inference_contracts.batch_keys import new_job
from inference_contracts.batch_limits import RESERVED_CALLS
from tests.unit.docs.aws_command import AwsCommand

PAGE = (root() / "docs" / "batch-runbook.md").read_text(encoding="utf-8")
TEMPLATE = root() / "tests/templates/recorded/batch-g6e.json"
LINES = [
    line
    for fence in re.findall(r"^```sh\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    for line in fence.splitlines()
]
JOB = new_job("qwen3-8b")
#: What has no equal in the emulation: it starts containers for functions.
NOT_EMULATED = {
    *("invoke", "get-function-configuration"),
    *("put-function-concurrency", "delete-function-concurrency"),
}


def commands() -> list[str]:
    return [line for line in LINES if line.startswith("aws ")]


def queries() -> dict[str, str]:
    """What finds each name, by the variable."""
    exports = [re.fullmatch(r'export (\w+)="\$\((aws .*)\)"', line) for line in LINES]
    words = {found[1]: shlex.split(found[2]) for found in exports if found}
    return {name: each[each.index("--query") + 1] for name, each in words.items()}


def test_every_name_is_found_in_the_stack() -> None:
    stack = json.loads(TEMPLATE.read_text(encoding="utf-8"))["Batch"]["Resources"]
    listed = [
        {"LogicalResourceId": name, "PhysicalResourceId": name, "ResourceType": each["Type"]}
        for name, each in stack.items()
    ]
    found = {name: jmespath.search(query, {"StackResources": listed}) for name, query in queries().items()}
    assert set(found) == {"MACHINE", "SCHEDULER", "API", "OBJECT", "CRON", "QUEUE", "DEAD"}
    functions = {
        "SCHEDULER": ("scheduling.handlers.schedule", RESERVED_CALLS["schedule"]),
        "API": ("api.handler.handle", RESERVED_CALLS["api"]),
        "OBJECT": ("submission.handlers.handle_object", None),
        "CRON": ("submission.handlers.handle_schedule", None),
    }
    for name, (handler, reserved) in functions.items():
        properties = stack[found[name]]["Properties"]
        assert properties["Handler"] == f"batch.{handler}"
        assert properties.get("ReservedConcurrentExecutions") == reserved
    assert f"--reserved-concurrent-executions {RESERVED_CALLS['api']}\n" in PAGE
    redrive = stack[found["QUEUE"]]["Properties"]["RedrivePolicy"]
    assert redrive["deadLetterTargetArn"]["Fn::GetAtt"][0] == found["DEAD"]
    assert stack[found["MACHINE"]]["Type"] == "AWS::StepFunctions::StateMachine"
    alarms = {each[len("Monitoring") :] for each in stack if stack[each]["Type"] == "AWS::CloudWatch::Alarm"}
    for name in re.findall(r"^\| `(\w+?)(?:-<\w+>)?` \|.*\[", PAGE, re.MULTILINE):
        assert any(alarm.startswith(name) for alarm in alarms), name


@pytest.mark.parametrize("line", commands())
def test_each_option_is_the_operations_own(line: str) -> None:
    assert AwsCommand.of(shlex.split(line)).parameters()


def test_the_commands_do_what_they_say(aws: dict[str, str]) -> None:
    states, sqs = boto3.client("stepfunctions"), boto3.client("sqs")
    machine = aws["BATCH_STATE_MACHINE_ARN"]
    started = states.start_execution(stateMachineArn=machine, name=f"{JOB}-1")["executionArn"]
    queue, dead = (sqs.create_queue(QueueName=name)["QueueUrl"] for name in ("shards", "dead"))
    for url in (queue, dead, dead):
        sqs.send_message(QueueUrl=url, MessageBody='{"job": "a"}')
    boto3.client("logs").create_log_group(logGroupName="/aws/lambda/scheduler")
    execution = f"{machine.replace(':stateMachine:', ':execution:')}:{JOB}-1"
    assert execution == started, "as the runbook makes it of the machine's"

    values = {
        "EXECUTION": execution,
        "MACHINE": machine,
        "QUEUE": queue,
        "DEAD": dead,
        "SCHEDULER": "s",
    }
    answers = {}
    for line in commands():
        text = line
        for name, value in values.items():
            text = text.replace(f"${name}", value)
        command = AwsCommand.of(shlex.split(text))
        if command.operation in NOT_EMULATED:
            continue
        call = getattr(boto3.client(command.service), command.operation.replace("-", "_"))
        answers[command.operation] = call(**command.parameters())
    assert answers["get-queue-attributes"]["Attributes"]["ApproximateNumberOfMessages"] == "1"
    assert len(answers["receive-message"]["Messages"]) == 2
    assert "Messages" not in sqs.receive_message(QueueUrl=dead)
    assert states.describe_execution(executionArn=execution)["status"] == "ABORTED"
    assert {"list-executions", "get-execution-history", "describe-alarms", "filter-log-events"} <= set(
        answers
    )
