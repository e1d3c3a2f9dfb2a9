"""What a command checks before it writes a file or starts the CDK: the folder, and the credentials."""

from __future__ import annotations

import json
import socket
import time
from pathlib import Path

import pytest
from botocore.exceptions import ClientError

from inference_blueprints import synthesis, tools
from inference_blueprints.operate.aws.account import Account, SignInError, readable_errors
from inference_blueprints.resources import root
from inference_contracts.errors import UserError
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


#: What needs an account, with blueprints that have what the command is about.
OF_AN_ACCOUNT = (
    "deploy my.yaml",
    "bootstrap my.yaml",
    "destroy my.yaml",
    "prune my.yaml",
    "diff my.yaml",
    "upgrade my.yaml",
    "take-over my.yaml --yes",
    "token batch-g6e",
    "batch submit batch-g6e requests.jsonl",
    "batch status batch-g6e",
    "batch results batch-g6e batch_1",
    "signals get batch-g6e product-captions key",
    "streaming redrive streaming-g6e shopper",
    "usage front-door",
    "keys create front-door --team shop --name ci",
    "keys list front-door",
    "keys rotate front-door 000000000000",
    "keys revoke front-door 000000000000",
    "costs capacity-and-health --from 2026-11-01 --to 2026-11-02",
    "doctor my.yaml",
    "verify my.yaml",
)


@pytest.mark.parametrize("words", OF_AN_ACCOUNT)
def test_every_command_that_needs_an_account_says_the_same_and_starts_nothing(
    words: str, blueprint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """botocore's own sentence, and a CDK that is started to find out, turn this red."""
    monkeypatch.setattr(tools, "cdk", lambda: pytest.fail("the CDK starts"))
    (blueprint.parent / "requests.jsonl").write_text("{}\n")
    ran = blueprints(*words.split(), folder=blueprint.parent)
    # `doctor` and `verify` print checks on standard output; what helps is a part of its own.
    checked = f"error    credentials: {NO_CREDENTIALS}".replace("; run ", "; run: ")
    last = ran.out.splitlines() if ran.out else ran.err.splitlines()
    assert (ran.code, last[-1]) == (1, checked if ran.out else NO_CREDENTIALS)
    assert {path.name for path in blueprint.parent.iterdir()} == {"my.yaml", "requests.jsonl"}


def test_a_metadata_service_that_does_not_answer_costs_less_than_a_second(
    blueprint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """botocore's two waits of a second turn this red; a limit of the environment stays as it is."""

    def limit() -> float:
        core = Account("us-west-2").session._session
        return float(core.get_config_variable("metadata_service_timeout"))

    assert 2 * limit() < 1
    monkeypatch.setenv("AWS_METADATA_SERVICE_TIMEOUT", "5")
    assert limit() == 5


@pytest.mark.parametrize("code", ["ExpiredToken", "InvalidClientTokenId", "UnrecognizedClientException"])
def test_credentials_that_aws_refuses_get_the_same_advice(code: str) -> None:
    with pytest.raises(SignInError, match="run aws sso login, or export AWS_PROFILE"), readable_errors():
        raise ClientError({"Error": {"Code": code, "Message": "no"}}, "DescribeStacks")
    with pytest.raises(UserError) as refused, readable_errors():
        raise ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, "DescribeStacks")
    assert not isinstance(refused.value, SignInError)


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


@pytest.mark.clock
def test_what_is_configured_is_waited_for_and_what_is_not_is_no_wait(
    blueprint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A service that takes connections and answers nothing stands in for a network that drops packets."""
    monkeypatch.delenv("AWS_EC2_METADATA_DISABLED")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        place = f"http://127.0.0.1:{silent.getsockname()[1]}"
        monkeypatch.setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", place)
        started = time.monotonic()
        with pytest.raises(SignInError, match="there are no AWS credentials"):
            Account("us-west-2").client("eks")
        assert time.monotonic() - started < 2
    answer = json.dumps({"Version": 1, "AccessKeyId": "AKIDEXAMPLE", "SecretAccessKey": "secret"})
    program = blueprint.parent / "credentials.sh"
    program.write_text(f"sleep 2.5; echo '{answer}'\n")
    configuration = blueprint.parent / "config"
    configuration.write_text(f"[default]\ncredential_process = sh {program}\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(configuration))
    assert Account("us-west-2").credentials.access_key == "AKIDEXAMPLE"
