"""The `aws` commands of runbooks are operations of AWS with options that they have, by AWS's own models."""

from __future__ import annotations

import pytest

from inference_blueprints.resources import root
from tests.unit.docs.aws_command import AwsCommand
from tests.unit.docs.test_commands import commands

_PAGES = sorted((root() / "docs/runbooks").glob("*.md"))
#: Part of the command line itself: test_kubectl_commands.py has its log groups and options.
_OF_THE_COMMAND_LINE = ["aws", "logs", "tail"]
_COMMANDS = {
    " ".join(words): words
    for page in _PAGES
    for words in commands(page)
    if words[0] == "aws" and words[:3] != _OF_THE_COMMAND_LINE
}


def test_runbooks_have_such_commands() -> None:
    assert len(_COMMANDS) >= 5


@pytest.mark.parametrize("line", _COMMANDS)
def test_aws_has_the_operation_and_its_options(line: str) -> None:
    assert AwsCommand.of(_COMMANDS[line]).parameters()


def _gaps(shown: object) -> bool:
    if isinstance(shown, dict | list):
        parts = list(shown.values()) if isinstance(shown, dict) else shown
        return not parts or any(_gaps(part) for part in parts)
    return shown is None


@pytest.mark.parametrize("line", [line for line, words in _COMMANDS.items() if "--query" in words])
def test_what_is_shown_is_in_the_answer(line: str) -> None:
    assert not _gaps(AwsCommand.of(_COMMANDS[line]).shown())


@pytest.mark.parametrize("query", ["services[].{name:serviceName,tasks:runningTasks}", "hosts[].status"])
def test_a_name_that_the_answer_lacks_is_noticed(query: str) -> None:
    assert _gaps(AwsCommand.of(["aws", "ecs", "describe-services", "--query", query]).shown())


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("aws sqs empty-queue --queue-url QUEUE", KeyError),
        ("aws sqs purge-queue --queue QUEUE", KeyError),
        ("aws sqs purge-queue", ValueError),
        ("aws ecs stop-task --no-task", KeyError),
        ("aws sqs receive-message --queue-url QUEUE --max-number-of-messages many", ValueError),
    ],
)
def test_another_command_is_noticed(line: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        AwsCommand.of(line.split()).parameters()
