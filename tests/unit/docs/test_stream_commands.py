"""Commands of the runbooks of streaming: AWS has the operations, and they ask for the application's name."""

from __future__ import annotations

import re

from botocore.session import Session

from inference_blueprints.resources import root
from inference_contracts.streaming_job import STREAMING_RUNBOOKS, flink_applications


def test_commands_name_operations_and_the_application_as_it_is_called() -> None:
    pages = "\n".join((root() / each).read_text("utf-8") for each in STREAMING_RUNBOOKS)
    found = re.findall(r"aws kinesisanalyticsv2 (\S+) --application-name (\S+)$", pages, re.MULTILINE)
    assert len(found) >= 2
    model = Session().get_service_model("kinesisanalyticsv2")
    for operation, name in found:
        assert name == flink_applications("PLATFORM", "JOB")[0]
        shape = model.operation_model("".join(each.title() for each in operation.split("-"))).input_shape
        assert shape is not None
        assert shape.required_members == ["ApplicationName"]
