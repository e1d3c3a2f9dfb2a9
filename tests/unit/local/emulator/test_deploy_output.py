"""What is read out of the CDK command line's output."""

from pathlib import Path

import pytest

from inference_blueprints.local.emulator.deploy import DeployError, ResourceEvent, _parse_event

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
    assert _parse_event(line) == event


def test_the_stack_itself_is_not_counted_as_a_resource() -> None:
    stack = ResourceEvent("x", "CREATE_COMPLETE", "AWS::CloudFormation::Stack", "x", "")
    role = ResourceEvent("x", "UPDATE_COMPLETE", "AWS::IAM::Role", "Role", "")
    assert (stack.is_complete, role.is_complete) == (False, True)


def test_the_error_is_one_line_that_names_resource_reason_and_log(tmp_path: Path) -> None:
    failure = ResourceEvent("x", "CREATE_FAILED", "AWS::EC2::EIP", "Address", "the quota is reached")
    error = DeployError("cdk deploy failed with code 1", [failure], tmp_path / "log")
    assert str(error) == (
        "cdk deploy failed with code 1: x: AWS::EC2::EIP Address: the quota is reached; "
        f"the whole output is in {tmp_path / 'log'}"
    )


def test_without_a_failed_resource_the_last_line_of_the_output_is_the_cause(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("x: creating CloudFormation changeset...\nTemplate format error: what is this?\n\n")
    error = DeployError("cdk deploy failed with code 1", [], log)
    assert "code 1: Template format error: what is this?; the whole" in str(error)
