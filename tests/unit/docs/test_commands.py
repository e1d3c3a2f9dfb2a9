"""Every command in the documentation: run here, or covered by something that is named."""

from __future__ import annotations

import itertools
import json
import re
import shlex
import subprocess
import textwrap
from pathlib import Path

import pytest

from inference_blueprints import tools
from inference_blueprints.loading import load_blueprint
from inference_blueprints.resources import root
from inference_blueprints.spec.source import shipped
from tests.unit.command_run import blueprints

PAGES = [*sorted(root().glob("*.md")), *sorted((root() / "docs").glob("**/*.md"))]

#: At the beginning of a line, or indented in a list.
_FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^\1```", re.MULTILINE | re.DOTALL)

ENDPOINT = "http://127.0.0.1:PORT"

#: How each command is covered, by the first pattern that it begins with.
KINDS = {
    # Fast and without a network: run as they are written, page by page.
    "run": r"blueprints (list|show|init|validate|schema|plan|lock)\b",
    # These need an account, or start much: here only their arguments are checked.
    "parsed": (
        r"blueprints (synth|bootstrap|deploy|diff|charts|image-cache|upgrade|doctor|verify|costs|prune"
        r"|destroy|take-over|local|tune|benchmark|token|batch|signals|streaming|capacity|models|engines|keys|usage)\b"
    ),
    # Held to AWS's own model: test_keys_page.py.
    "federation": r"aws iam (enable|get)-outbound-web-identity-federation(-info)?$",
    # Targets, checked to exist in the Makefile; the integration run or a person's hands run them.
    "make": r"make [a-z-]+( |$)",
    # `make test-java` runs all of it except the copy into the local repository.
    "maven": r"mvn -f runtime/java install$",
    # The app that they run, and what it takes: tests/templates/test_app.py.
    "cdk": r"(cdk synth -c blueprint=|BLUEPRINT=\S+ cdk deploy --all$)",
    "pytest": r"pytest tests/templates$",
    # These record facts from registries: the script and its options must exist.
    "script": r"(python|uv run --script) scripts/",
    # Sent by tests/local to an endpoint of their own; the variables, in a shell: tests/local/test_run.py.
    "request": rf"curl {ENDPOINT}/",
    "emulator": r"eval \$\(blueprints local env\)$|aws cloudformation describe-stacks$",
    # The same, to the batch API of a run: tests/local/test_batch.py.
    "batch": r"export OPENAI_(BASE_URL|API_KEY)=|curl -s \$OPENAI_BASE_URL/batches ",
    # To the API itself: tests/runtime/batch/api/test_documentation.py.
    "api": r"(ask|field)\(\) \{|(FILE|JOB)=\$\(ask |ask (batches|files)/",
    # The same wheels, environment and examples: tests/local/test_constructs.py.
    "constructs": (
        r"python -m uv build --all-packages|python3 -m venv app$|app/bin/pip install --find-links dist "
        r"|(CDK_OUTDIR=cdk.out )?app/bin/python constructs/examples/"
    ),
    # kubectl itself reads the arguments here; tests/unit/docs/test_kubectl_commands.py has the names.
    "kubectl": r"kubectl (annotate|delete|describe|get|logs|patch|port-forward|scale|uncordon) ",
    # The log group and the options: tests/unit/docs/test_kubectl_commands.py.
    "tail": r"aws logs tail ",
    # Held to AWS's own models and run in an emulation: tests/runtime/batch/test_runbook.py.
    "aws": (
        r"aws (cloudwatch|lambda|logs|sqs|stepfunctions) "
        r"|export (JOB|MACHINE|SCHEDULER|API|OBJECT|CRON|QUEUE|DEAD|EXECUTION)="
    ),
    # Held to AWS's own model: test_stream_commands.py.
    "flink": r"aws kinesisanalyticsv2 (describe|start|stop)-application --application-name ",
    # Held to AWS's own model and to the name that the functions read: test_freeze_command.py.
    "freeze": r"aws ssm put-parameter ",
    # Called with its options: tests/runtime/capacity_shift/test_by_hand.py.
    "floor": r"aws application-autoscaling register-scalable-target ",
    # Held to AWS's own model and to the name of the attribute: test_host_commands.py.
    "hosts": r"aws ecs (update-container-instances-state|delete-attributes) ",
    # Held to AWS's own model and to the label of a pending version: test_secret_commands.py.
    "secret": r"aws secretsmanager (list-secrets|describe-secret|update-secret-version-stage|rotate-secret) ",
    # Held to AWS's own models, and to the names of the stacks: test_aws_commands.py, test_ecs_commands.py.
    "ecs": (
        r"aws (application-autoscaling describe-|autoscaling (describe|terminate)-|ecs (describe|list|stop)-"
        r"|cloudformation describe-stack-resources |codebuild start-build )"
    ),
    # Sent to the stand-in of ECS with these parameters: tests/local/ecs/test_running_tasks.py.
    "session": r"aws ecs execute-command --cluster PLATFORM --task TASK --container main --interactive ",
    # The release of the template and its chart: test_scaler_command.py.
    "helm": r"(aws cloudformation get-template --stack-name PLATFORM-Platform |helm upgrade keda )",
    # Installed from the wheels, with what comes after: tests/local/test_wheel.py.
    "pip": r"pip install inference-local$",
    # Installed in empty folders: tests/local/test_wheel.py.
    "tool": r"uv tool install ",
    # Every patch applies to the sources of the installed release: test_upstream_patches.py.
    "upstream": r"git (clone https://github.com/ministackorg/ministack |apply \.\./[a-z-]+\.patch$)",
    # Programs of others that need gigabytes, or another Python: the page names the releases that ran so.
    "load": r"HF_HUB_OFFLINE=1 (TRANSFORMERS_OFFLINE=1 guidellm run|inference-perf) ",
    "shell": r"export (AWS_PROFILE|OPENAI_API_KEY)=",
    # The token, and what is read with it: tests/runtime/signals/test_connection.py.
    "valkey": r"export VALKEYCLI_AUTH=|valkey-cli ",
}


def fences(page: Path) -> list[tuple[str, str]]:
    """Return the language and the text of each fence, without its indentation."""
    found = _FENCE.findall(page.read_text(encoding="utf-8"))
    return [(language, textwrap.dedent(body)) for _, language, body in found]


def commands(page: Path) -> list[list[str]]:
    """Return the commands in a page's fences, without the folder that `blueprints` is in."""
    found = []
    for language, body in fences(page):
        lines = body.replace("\\\n", " ").splitlines()
        if language == "console":
            # Without a prompt, there is no output either.
            prompts = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
            lines = prompts or lines
        elif language not in {"sh", "bash", "shell"}:
            continue
        found += [shlex.split(line, comments=True) for line in lines]
    return [[words[0].removeprefix(".venv/bin/"), *words[1:]] for words in found if words]


def kind(words: list[str]) -> str:
    """Return how a command is covered."""
    line = " ".join(words)
    return next((name for name, pattern in KINDS.items() if re.match(pattern, line)), "unknown")


WITH_COMMANDS = [page for page in PAGES if commands(page)]


def lines(name: str) -> list[str]:
    """Return the commands of a kind, each once."""
    found = (words for page in WITH_COMMANDS for words in commands(page) if kind(words) == name)
    return list(dict.fromkeys(shlex.join(words) for words in found))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_is_covered(page: Path) -> None:
    unknown = [" ".join(words) for words in commands(page) if kind(words) == "unknown"]
    assert unknown == [], "run it in this test, or name what covers it"


@pytest.mark.parametrize("page", WITH_COMMANDS, ids=lambda page: page.name)
def test_a_page_s_commands_work_one_after_the_other(page: Path, tmp_path: Path) -> None:
    for words in commands(page):
        if kind(words) == "run":
            ran = blueprints(*words[1:], folder=tmp_path, COLUMNS="80")
            assert ran.code == 0, f"{shlex.join(words)}\n{ran.err}"


@pytest.mark.parametrize("line", lines("parsed"))
def test_a_command_has_the_arguments(line: str, tmp_path: Path) -> None:
    ran = blueprints(*shlex.split(line)[1:], "--help", folder=tmp_path)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out


@pytest.mark.parametrize("page", WITH_COMMANDS, ids=lambda page: page.name)
def test_make_targets_exist(page: Path) -> None:
    makefile = (root() / "Makefile").read_text(encoding="utf-8")
    documented = set(re.findall(r"^([a-z -]+):.* ## ", makefile, re.MULTILINE))
    targets = {target for targets in documented for target in targets.split()}
    used = {words[1] for words in commands(page) if kind(words) == "make"}
    assert used <= targets


@pytest.mark.parametrize("page", WITH_COMMANDS, ids=lambda page: page.name)
def test_scripts_and_their_options_exist(page: Path) -> None:
    for words in commands(page):
        if kind(words) == "script":
            place, name = next((at, word) for at, word in enumerate(words) if word.startswith("scripts/"))
            source = (root() / name).read_text(encoding="utf-8")
            options = [word for word in words[place + 1 :] if word.startswith("--")]
            assert [option for option in options if f'"{option}"' not in source] == []


@pytest.mark.parametrize("page", WITH_COMMANDS, ids=lambda page: page.name)
def test_requests_are_those_that_the_local_tests_send(page: Path) -> None:
    sent = "".join(path.read_text(encoding="utf-8") for path in (root() / "tests" / "local").rglob("*.py"))
    for words in commands(page):
        if kind(words) == "emulator":
            assert "describe_stacks" in sent
        if kind(words) == "request":
            assert words[1].removeprefix(ENDPOINT) in sent
            served = {load_blueprint(name).blueprint.spec.models[0].name for name in shipped()}
            bodies = [json.loads(body) for option, body in itertools.pairwise(words) if option == "-d"]
            assert all(body["model"] in served for body in bodies)


def test_the_readme_names_targets_that_the_integration_run_covers() -> None:
    """Nobody would notice that another target fails for a new user."""
    targets = {words[1] for words in commands(root() / "README.md") if kind(words) == "make"}
    assert targets
    assert targets <= {"setup", "run", "test"}, "let the integration run cover the target, and add it here"


@pytest.mark.parametrize("line", lines("kubectl"))
def test_kubectl_knows_the_arguments(line: str) -> None:
    command = [str(tools.kubectl()), *shlex.split(line)[1:], "--help"]
    asked = subprocess.run(command, capture_output=True, text=True, check=False)
    assert asked.returncode == 0, asked.stderr


@pytest.mark.parametrize("line", ["bake x", "curl https://example.org | sh", "blueprints remove x"])
def test_an_uncovered_command_is_noticed(line: str, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    fenced = (
        f"```sh\n# why\n{line}\n```\n\n```console\n$ {line}\noutput\n```\n"
        f"1. In a list:\n\n   ```sh\n   {line}\n   ```\n\n```console\n{line}\n```\n"
    )
    page.write_text(fenced, encoding="utf-8")
    assert [kind(words) for words in commands(page)] == ["unknown"] * 4
