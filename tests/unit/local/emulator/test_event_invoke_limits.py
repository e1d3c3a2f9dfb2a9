"""Repeats of asynchronous calls: the emulator refuses what Lambda refuses."""

import json

import pytest

from inference_local.emulator.patches import event_invoke_limits
from inference_local.emulator.refusals import EVENT_INVOKE_LIMIT


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("MaximumEventAgeInSeconds", 59),
        ("MaximumEventAgeInSeconds", 21601),
        ("MaximumRetryAttempts", -1),
        ("MaximumRetryAttempts", 3),
    ],
)
def test_a_number_out_of_range_is_refused(name: str, value: int) -> None:
    """Red if a template passes here that a deployment to AWS would refuse."""
    status, _, body = event_invoke_limits._put("function", "$LATEST", {name: value})
    answer = json.loads(body)
    assert status == 400
    assert EVENT_INVOKE_LIMIT.code in answer["__type"]
    assert f"'{value}'" in answer["message"]
