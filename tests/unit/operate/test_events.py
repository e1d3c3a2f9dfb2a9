"""What is read out of the CDK command line's output."""

from pathlib import Path

import pytest

from inference_blueprints.operate.cloudformation.stack_events import (
    ResourceEvent,
    causes,
    finished_stack,
    parse_event,
    resource_counts,
)
from inference_blueprints.synthesis import stack_templates
from tests.unit.operate.fake_cloudformation import write_assembly

# Lines as aws-cdk 2.1148.1 prints them with `--ci --progress events`.
_LINES = {
    "a-Data |  3/15 | 8:58:17 AM | CREATE_COMPLETE    | AWS::IAM::Policy | Role/Policy (RolePolicy5FFB) ": (
        ResourceEvent("a-Data", "CREATE_COMPLETE", "AWS::IAM::Policy", "Role/Policy", "")
    ),
    "x | 1/2 | 9:22:53 AM | CREATE_FAILED        | AWS::EC2::EIP | Vpc/Address (VpcAddress1) it is taken": (
        ResourceEvent("x", "CREATE_FAILED", "AWS::EC2::EIP", "Vpc/Address", "it is taken")
    ),
    "x |  13 | 9:10:34 AM | DELETE_COMPLETE         | AWS::IAM::Role              | Role (Role1ABCC5F0) ": (
        ResourceEvent("x", "DELETE_COMPLETE", "AWS::IAM::Role", "Role", "")
    ),
    "x: creating CloudFormation changeset...": None,
    # The summary at the end repeats failures without a counter; they must not be counted twice.
    "x | 9:22:53 AM | CREATE_FAILED           | AWS::EC2::NatGateway       | Bad it lacks SubnetId": None,
}


@pytest.mark.parametrize(("line", "event"), _LINES.items())
def test_a_line_is_read_as_the_event_that_it_tells(line: str, event: ResourceEvent | None) -> None:
    assert parse_event(line) == event


def test_the_stack_itself_is_not_counted_as_a_resource() -> None:
    stack = ResourceEvent("x", "CREATE_COMPLETE", "AWS::CloudFormation::Stack", "x", "")
    role = ResourceEvent("x", "UPDATE_COMPLETE", "AWS::IAM::Role", "Role", "")
    assert (stack.is_complete, role.is_complete) == (False, True)


def test_what_failed_because_something_else_did_is_no_cause() -> None:
    consequence = ResourceEvent("x", "CREATE_FAILED", "AWS::EC2::VPC", "Vpc", "Resource creation cancelled")
    cause = ResourceEvent("x", "CREATE_FAILED", "AWS::EC2::EIP", "Address", "the quota is reached")
    assert (consequence.is_cause, cause.is_cause) == (False, True)
    assert causes([cause]) == ["x: AWS::EC2::EIP Address: the quota is reached"]


@pytest.mark.parametrize("line", [" ✅  a-Data", " ✅  a-Data (no changes)", "✅  a-Data"])
def test_a_stack_is_finished_changed_or_not(line: str) -> None:
    assert finished_stack(line) == "a-Data"


def test_other_lines_finish_nothing() -> None:
    assert finished_stack("a-Data: deploying... [1/6]") is None


def test_resources_are_counted_by_stack(tmp_path: Path) -> None:
    write_assembly(tmp_path, {"a-Data": {"Resources": {"Key": {}, "Bucket": {}}}, "a-Empty": {}})
    assert resource_counts(tmp_path) == {"a-Data": 2, "a-Empty": 0}


def test_templates_of_other_platforms_in_the_folder_do_not_count(tmp_path: Path) -> None:
    """The second `synth` in a folder named the templates of the first, and `deploy` compared them."""
    write_assembly(tmp_path, {"a-Data": {"Resources": {"Key": {}}}})
    write_assembly(tmp_path, {"b-Data": {"Resources": {"Key": {}}}})
    assert [path.name for path in stack_templates(tmp_path)] == ["b-Data.template.json"]
    assert resource_counts(tmp_path) == {"b-Data": 1}
