"""How a deployment to the emulator says that it failed."""

from pathlib import Path

from inference_blueprints.operate.cloudformation.stack_events import ResourceEvent
from inference_local.emulator.emulator_deploy import DeployError


def test_the_error_is_one_line_that_names_resource_reason_and_log(tmp_path: Path) -> None:
    failure = ResourceEvent("x", "CREATE_FAILED", "AWS::EC2::EIP", "Address", "the quota is reached")
    error = DeployError("cdk deploy failed with code 1", [failure], tmp_path / "log")
    assert str(error) == (
        "cdk deploy failed with code 1: x: AWS::EC2::EIP Address: the quota is reached; "
        f"the full output is in {tmp_path / 'log'}"
    )


def test_without_a_failed_resource_the_last_line_of_the_output_is_the_cause(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("x: creating CloudFormation changeset...\nTemplate format error: what is this?\n\n")
    error = DeployError("cdk deploy failed with code 1", [], log)
    assert "code 1: Template format error: what is this?; the full" in str(error)
