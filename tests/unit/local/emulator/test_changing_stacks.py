"""A stack that CloudFormation still changes takes no other change."""

from __future__ import annotations

import pytest
from ministack.services.cloudformation import handlers

from inference_local.emulator.patches import changing_stacks
from inference_local.emulator.refusals import STACK_CHANGES


@pytest.mark.parametrize(
    ("status", "refused"),
    [("UPDATE_IN_PROGRESS", True), ("REVIEW_IN_PROGRESS", False), ("UPDATE_COMPLETE", False), (None, False)],
)
def test_a_stack_that_changes_is_not_changed_again(
    monkeypatch: pytest.MonkeyPatch, status: str | None, *, refused: bool
) -> None:
    """It turns red if a killed deployment can be followed at once here, and not on AWS."""
    stack = {"StackId": "arn:a", "StackStatus": status} if status else None
    monkeypatch.setattr(handlers, "_resolve_stack", lambda _: stack)
    monkeypatch.setattr(changing_stacks, "_PLAIN_CREATE", lambda _: (200, {}, b"taken"))
    code, _, answer = changing_stacks._create({"StackName": "a"})
    assert (code == 400) == refused
    if refused:
        assert STACK_CHANGES.message.format(stack="arn:a", status=status) in answer.decode()
