"""How a deployment is shown while it runs, and what is said when it fails."""

import io
from pathlib import Path

import pytest
from rich.console import Console

from inference_blueprints.operate.cloudformation.cdk_deploy import DeploymentProgress
from inference_blueprints.operate.cloudformation.stack_events import advice
from tests.unit.operate.fake_cloudformation import write_assembly

CREATED = "a-Data |  1/3 | 8:58:17 AM | CREATE_COMPLETE    | AWS::KMS::Key | Key (Key961B73FD) "
FAILED = "a-Data |  1/3 | 8:58:17 AM | CREATE_FAILED | AWS::EC2::EIP | Vpc/EIP (Vpc1) The quota is reached"
CANCELLED = (
    "a-Data |  1/3 | 8:58:17 AM | CREATE_FAILED | AWS::S3::Bucket | B (B1) Resource creation cancelled"
)


@pytest.fixture
def assembly(tmp_path: Path) -> Path:
    stacks = {"a-Data": ["Key", "Bucket"], "a-Network": ["Vpc"]}
    templates: dict[str, dict[str, object]] = {
        name: {"Resources": {key: {} for key in keys}} for name, keys in stacks.items()
    }
    write_assembly(tmp_path, templates)
    return tmp_path


def shown(assembly: Path, *lines: str, terminal: bool) -> tuple[str, DeploymentProgress]:
    output = io.StringIO()
    console = Console(file=output, force_terminal=terminal, width=200, _environ={"TERM": "xterm"})
    with DeploymentProgress(console, assembly) as progress:
        for line in lines:
            progress.line(line)
    return output.getvalue(), progress


def test_the_bar_counts_resources_and_takes_an_unchanged_stack_as_done(assembly: Path) -> None:
    _, progress = shown(assembly, CREATED, " ✅  a-Network (no changes)", terminal=True)
    assert (progress.complete, progress.total) == (2, 3)


def test_a_resource_that_is_updated_again_does_not_count_beyond_its_stack(assembly: Path) -> None:
    _, progress = shown(assembly, CREATED, CREATED, CREATED, terminal=True)
    assert progress.complete == 2


def test_a_terminal_sees_events_without_counter_and_a_bar(assembly: Path) -> None:
    text, _ = shown(assembly, CREATED, terminal=True)
    assert "a-Data  CREATE_COMPLETE  AWS::KMS::Key  Key" in text
    assert "resources" in text


def test_without_a_terminal_there_are_the_cdk_s_lines_alone(assembly: Path) -> None:
    text, _ = shown(assembly, "Synthesizing", CREATED, " ✅  a-Data", terminal=False)
    assert text == f"Synthesizing\n{CREATED}\n ✅  a-Data\n"


def test_a_failure_names_the_cause_alone_and_what_to_do(assembly: Path) -> None:
    _, progress = shown(assembly, FAILED, CANCELLED, "❌  a-Data failed: ToolkitError", terminal=False)
    cause, what_to_do = progress.explanation("my.yaml")
    assert cause == "a-Data: AWS::EC2::EIP Vpc/EIP: The quota is reached"
    assert what_to_do.startswith("what to do: request a higher quota; `blueprints doctor my.yaml`")


def test_without_a_failed_resource_the_cdk_s_own_error_is_the_cause(assembly: Path) -> None:
    line = "a-Data: SSM parameter /cdk-bootstrap/x/version not found. Has the environment been bootstrapped?"
    _, progress = shown(assembly, f"❌ {line}", terminal=False)
    assert progress.explanation("x") == [
        f"❌ {line}",
        "what to do: run `blueprints bootstrap x` and deploy again",
    ]


def test_a_question_is_shown_at_once_and_no_template_is_needed_for_it(tmp_path: Path) -> None:
    output = io.StringIO()
    with DeploymentProgress(Console(file=output, force_terminal=True), tmp_path) as progress:
        progress.question("Do you wish to deploy these changes (y/n)? ")
    assert "Do you wish to deploy these changes (y/n)? " in output.getvalue()


@pytest.mark.parametrize(
    ("reason", "words"),
    {
        "You have requested more vCPU capacity (VcpuLimitExceeded)": "quota",
        "User: arn:x is not authorized to perform: ec2:CreateVpc": "permission",
        "UPGRADE FAILED: another operation (install/upgrade/rollback) is in progress": "stuck",
        "Bucket weights already exists": "rename",
        "x is in ROLLBACK_COMPLETE state and can not be updated": "blueprints destroy x",
        "Stack is in UPDATE_IN_PROGRESS state": "another deployment is running",
        'strict decoding error: unknown field "spec.limitz"': "resource definition",
        "The security token included in the request is expired": "sign in",
        "terminal (TTY) is not attached": "--require-approval never",
    }.items(),
)
def test_usual_reasons_come_with_what_mends_them(reason: str, words: str) -> None:
    assert words in (advice(reason, "x") or "")


def test_an_unknown_reason_speaks_for_itself() -> None:
    assert advice("The moon is full", "x") is None
