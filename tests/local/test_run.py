"""The whole way, as a user goes it: one command, tokens, a report, and nothing left behind."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import boto3
import openai
import pytest

from inference_blueprints.measure.statistics import amount
from inference_blueprints.resources import root
from tests.local.conftest import BLUEPRINTS, Run

MODEL = "qwen3-8b"
QUICKSTART = ("quickstart-g6e", "--seconds", "5")


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    run = Run(tmp_path_factory.mktemp("up") / "run", *QUICKSTART, "--keep")
    try:
        # Here and not in a test: no stack is deployed at this moment, and the model has to answer.
        run.wait_for("[2/6] Write the CloudFormation templates ...")
        assert answer_of(next(line for line in run.output.splitlines() if line.startswith("curl ")))
        run.wait_for("Press Ctrl-C to stop")
        yield run
        check_down(run)
    finally:
        run.process.terminate()
        run.process.wait(60)


def check_down(run: Run) -> None:
    """End a run as a user does. It is the end of the run that all tests share, because a run takes long."""
    down = blueprints("local", "down", "--run-directory", str(run.run_directory))
    assert (down.returncode, down.stdout) == (0, "stopped\n")
    assert run.wait_for_end() == 0
    assert run.processes_left() == []
    status = blueprints("local", "status", "--run-directory", str(run.run_directory))
    assert status.returncode == 1


@pytest.fixture(scope="module")
def report(up: Run) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((up.run_directory / "report.json").read_text())
    return document


@pytest.fixture(scope="module")
def client(report: dict[str, Any]) -> openai.OpenAI:
    return openai.OpenAI(base_url=report["endpoint"], api_key="unused", max_retries=0)


def blueprints(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(BLUEPRINTS), *arguments], cwd=root(), capture_output=True, text=True, check=False
    )


def answer_of(curl: str) -> str:
    """Send what a printed command sends, and return the text of the answer."""
    words = shlex.split(curl)
    url, header, body = words[2], words[words.index("-H") + 1], words[words.index("-d") + 1]
    request = urllib.request.Request(url, body.encode(), dict([header.split(": ")]))  # noqa: S310 - loopback
    with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310
        return str(json.load(answer)["choices"][0]["message"]["content"])


def test_the_models_answer_before_anything_else_is_done(up: Run) -> None:
    """Engines that start after the deployment let a newcomer wait for half a minute."""
    lines = up.output.splitlines()
    [answers] = [number for number, line in enumerate(lines) if "qwen3-8b answers (engines simulated" in line]
    [curl] = [number for number, line in enumerate(lines) if line.startswith("curl ")]
    [templates] = [number for number, line in enumerate(lines) if line.startswith("[2/6]") and "..." in line]
    assert answers < curl < templates
    assert "frontends and router real)" in lines[answers].lower()


def test_the_end_is_ten_lines_and_the_page(up: Run) -> None:
    """The whole report stands in the page; with --full, also here."""
    lines = up.output.splitlines()
    end = lines[next(n for n, line in enumerate(lines) if line.startswith("requests ")) :]
    words = [line.split()[0] for line in end if not line.startswith(" ")]
    assert words == [
        *("requests", "first", "per", "price", "real", "not", "report", "still", "next"),
        "Running.",
    ]
    assert len(end) <= 13
    assert max(map(len, end)) <= 80 or str(up.run_directory) in max(end, key=len)
    assert str(up.run_directory / "report.html") in up.output


def test_the_report_has_the_figures_of_every_request(report: dict[str, Any]) -> None:
    assert report["requests"] > 0
    assert report["failures"] == 0
    assert report["simulated"] is True
    for name in ("ttftMs", "timePerOutputTokenMs", "endToEndMs"):
        assert 0 < report[name]["p50"] <= report[name]["p90"] <= report[name]["p99"]
    assert report["ttftMs"]["p50"] < report["endToEndMs"]["p50"]
    assert 0 <= report["prefixCacheHitRatio"] <= 1


def test_the_report_says_of_each_part_how_real_it_is(report: dict[str, Any]) -> None:
    states = {part["name"]: part["state"] for part in report["parts"]}
    assert all(part["detail"] for part in report["parts"])
    assert states["Frontends and router of qwen3-8b-main"] == "real"
    assert states["Engines of qwen3-8b-main"] == "simulated"
    assert states["AWS"] == "emulated"
    assert states["AWS::EC2::NatGateway"] == "stubbed"


def test_the_report_says_that_a_killed_worker_lost_no_stream(up: Run, report: dict[str, Any]) -> None:
    (loss,) = report["workerLosses"]
    assert (loss["deployment"], loss["role"], loss["workers"], loss["killed"]) == (
        "qwen3-8b-main",
        "worker",
        2,
        1,
    )
    assert 0 < loss["moved"] <= loss["streams"]
    assert loss["lost"] == 0
    assert f"1 of 2 workers killed: {amount(loss['moved'], 'answer')} moved, 0 lost" in up.output
    line = f"1 of 2 workers of qwen3-8b-main killed during {loss['streams']} answers"
    assert line in (up.run_directory / "report.html").read_text()


def test_the_page_is_one_file(up: Run) -> None:
    page = (up.run_directory / "report.html").read_text()
    assert "<svg" in page
    assert "src=" not in page
    assert "<link" not in page


def test_the_printed_curl_line_works(up: Run, report: dict[str, Any]) -> None:
    assert report["curl"] in up.output.splitlines()
    assert answer_of(report["curl"])


def test_models_chat_and_completions(client: openai.OpenAI) -> None:
    assert [model.id for model in client.models.list()] == [MODEL]
    chat = client.chat.completions.create(
        model=MODEL, messages=[{"role": "user", "content": "Say hello"}], max_tokens=7
    )
    assert chat.usage is not None
    assert chat.usage.completion_tokens == 7
    completion = client.completions.create(model=MODEL, prompt="Once", max_tokens=5)
    assert completion.choices[0].text


def test_a_worker_that_is_killed_comes_back_and_no_request_is_lost(up: Run, client: openai.OpenAI) -> None:
    up.look()
    up.find("simulated_engine").kill()
    chat = client.chat.completions.create(
        model=MODEL, messages=[{"role": "user", "content": "Say hello"}], max_tokens=7
    )
    assert chat.usage is not None
    assert chat.usage.completion_tokens == 7
    up.wait_for("was killed by signal 9; started it again (1 of 5 times in 10 minutes)")
    assert up.process.poll() is None


def test_streaming(client: openai.OpenAI) -> None:
    stream = client.chat.completions.create(
        model=MODEL,
        messages=[{"role": "user", "content": "Say hello"}],
        max_tokens=9,
        stream=True,
        stream_options={"include_usage": True},
    )
    chunks = list(stream)
    assert sum(bool(chunk.choices and chunk.choices[0].delta.content) for chunk in chunks) > 1
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.completion_tokens == 9


def test_errors_are_those_of_the_api(client: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError):
        client.chat.completions.create(model="other", messages=[{"role": "user", "content": "x"}])
    with pytest.raises(openai.BadRequestError):
        client.chat.completions.create(model=MODEL, messages=[], max_tokens=5)


def test_the_stacks_were_deployed_and_the_model_rendered(up: Run) -> None:
    deployed = (up.run_directory / "logs/deploy.log").read_text()
    assert "quickstart-Model-qwen3-8b" in deployed
    rendered = [path.name for path in (up.run_directory / "kubernetes").rglob("*.yaml")]
    assert any(name.startswith("dynamographdeployment") for name in rendered)
    assert any(name.startswith("nodepool") for name in rendered)


def test_status_names_the_endpoint(up: Run, report: dict[str, Any]) -> None:
    status = blueprints("local", "status", "--run-directory", str(up.run_directory), "--output", "json")
    state = json.loads(status.stdout)
    assert state["phase"] == "ready"
    assert state["models"][0]["base_url"] == report["endpoint"]


def test_the_variables_lead_clients_to_this_platform(up: Run, report: dict[str, Any]) -> None:
    """Without them, they stand only in the state of the run, for programs."""
    printed = subprocess.run(
        [
            "sh",
            "-c",
            'eval "$("$0" local env --run-directory "$1")"; env',
            str(BLUEPRINTS),
            str(up.run_directory),
        ],
        capture_output=True,
        text=True,
        check=True,
        env={"PATH": os.environ["PATH"]},
    )
    variables = dict(line.split("=", 1) for line in printed.stdout.splitlines())
    assert variables["OPENAI_BASE_URL"] == report["endpoint"]
    session = boto3.Session(variables["AWS_ACCESS_KEY_ID"], variables["AWS_SECRET_ACCESS_KEY"])
    client = session.client(
        "cloudformation", variables["AWS_REGION"], endpoint_url=variables["AWS_ENDPOINT_URL"]
    )
    stacks = {stack["StackName"] for stack in client.describe_stacks()["Stacks"]}
    assert "quickstart-Model-qwen3-8b" in stacks


@pytest.fixture
def short_answers(tmp_path: Path) -> Path:
    """The same blueprint with answers of 20 tokens, which take a tenth of the time."""
    text = (root() / "blueprints/quickstart-g6e.yaml").read_text()
    path = tmp_path / "mine.yaml"
    path.write_text(text.replace("outputTokens: 200", "outputTokens: 20"))
    return path


def test_the_running_platform_is_verified_like_a_cluster(up: Run, short_answers: Path) -> None:
    verified = blueprints("verify", str(short_answers), "--local", "--run-directory", str(up.run_directory))
    assert "Traceback" not in verified.stderr
    lines = verified.stdout.splitlines()
    assert "ok       workers: qwen3-8b-main/worker: 2 of 2 are ready" in lines
    assert "unknown  nodes: not checked here: the processes run on this machine, not on a cluster" in lines
    errors = [line for line in lines if line.startswith("error")]
    # Whether latencies meet the objectives, and whether the news of a cached prompt comes in time, depends on
    # how busy this machine is.
    assert not [line for line in errors if line.split()[1] not in {"objectives:", "prefix"}], errors
    assert verified.returncode == bool(errors)


def test_a_second_run_in_the_same_folder_is_refused(up: Run) -> None:
    second = blueprints("local", "up", *QUICKSTART, "--run-directory", str(up.run_directory))
    assert second.returncode == 1
    assert "another run is using this folder" in second.stderr
    assert second.stdout == "", "it is said before any work"
    assert up.process.poll() is None


def test_the_replay_can_be_run_again_with_another_workload(
    up: Run, short_answers: Path, tmp_path: Path
) -> None:
    again = blueprints(
        *("local", "replay", str(short_answers), "--seconds", "5"),
        *("--run-directory", str(up.run_directory), "--output", "json"),
    )
    assert again.returncode == 0, again.stderr
    document = json.loads(again.stdout)
    assert document["requests"] > 0
    assert document["failures"] == 0
    assert blueprints("local", "replay", str(short_answers), "--run-directory", str(tmp_path)).returncode == 1


@pytest.mark.faults
@pytest.mark.parametrize(
    ("moment", "number", "exit_code"),
    [
        ("[1/6]", signal.SIGINT, 130),
        ("[2/6]", signal.SIGTERM, 143),
        ("[3/6]", signal.SIGTERM, 143),
        ("[5/6]", signal.SIGINT, 130),
        ("[5/6]", signal.SIGKILL, -9),
    ],
)
def test_interrupted_it_leaves_no_process(
    start_run: Callable[..., Run], moment: str, number: signal.Signals, exit_code: int
) -> None:
    run = start_run(*QUICKSTART)
    run.wait_for(moment)
    run.process.send_signal(number)
    assert run.wait_for_end() == exit_code, run.output
    assert "Traceback" not in run.output
    assert run.seen
    assert run.processes_left() == []


@pytest.mark.faults
def test_a_killed_frontend_ends_the_run_with_one_clear_error(start_run: Callable[..., Run]) -> None:
    run = start_run("quickstart-g6e", "--seconds", "20")
    run.wait_for("[5/6]")
    run.find("dynamo.frontend").kill()
    assert run.wait_for_end() == 1
    assert "Traceback" not in run.output
    assert "frontend" in run.output
    assert run.processes_left() == []
