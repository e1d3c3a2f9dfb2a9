"""What a command checks before it writes a file or starts the CDK: the folder, and the credentials."""

from __future__ import annotations

from pathlib import Path

import pytest

from inference_blueprints import synthesis, tools
from inference_blueprints.resources import root
from tests.unit.command_run import blueprints

TEXT = (root() / "blueprints" / "quickstart-g6e.yaml").read_text(encoding="utf-8")
NO_CREDENTIALS = "there are no AWS credentials; run aws sso login, or export AWS_PROFILE=..."


@pytest.fixture
def blueprint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A blueprint in the working directory, in an environment without credentials."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my.yaml").write_text(TEXT)
    return tmp_path / "my.yaml"


def refusal(*arguments: str) -> str:
    """Return the last line of standard error."""
    ran = blueprints(*arguments, folder=Path.cwd())
    assert ran.code == 1
    return ran.err.splitlines()[-1]


@pytest.mark.parametrize("command", ["deploy", "bootstrap", "destroy", "prune"])
def test_without_credentials_nothing_is_written_and_nothing_starts(
    command: str, blueprint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tools, "cdk", lambda: pytest.fail("the CDK starts"))
    assert refusal(command, "my.yaml") == NO_CREDENTIALS
    assert [path.name for path in blueprint.parent.iterdir()] == ["my.yaml"]


def test_the_profile_of_the_cdk_s_arguments_counts(blueprint: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    line = refusal("deploy", "my.yaml", "--profile", "nobody")
    assert "The config profile (nobody) could not be found; run aws sso login" in line


@pytest.mark.parametrize("folder", ["my.yaml", "/dev/null/x", "/proc/x", "/proc/self"])
def test_a_folder_that_cannot_hold_templates_is_refused_before_the_synthesis(
    folder: str, blueprint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(synthesis, "synthesise", lambda *_: pytest.fail("the synthesis starts"))
    line = refusal("synth", "my.yaml", "--directory", folder)
    assert line.startswith(f"--directory {folder}: cannot hold templates: ")
    assert line.endswith("; choose another folder")
