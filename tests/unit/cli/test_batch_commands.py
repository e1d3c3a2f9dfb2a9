"""`blueprints token` and `blueprints batch …`, against the API itself over AWS in an emulation."""

from __future__ import annotations

import json
import socket
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import boto3
import pytest
import urllib3

from batch.api.handler import build
from batch.authorizer.caller_identity import CallerIdentity
from batch.authorizer.handler import Authorizer
from batch.contracts.keys import JobKeys
from batch.contracts.request import JobRequest
from batch.contracts.shard import Usage
from batch.contracts.states import JobState
from batch.jobs.files import FileRecord
from batch.jobs.job import Job, JobError, RequestCounts
from batch.jobs.job_table import plain
from batch.jobs.settings import Platform, read_platform
from inference_blueprints.cli import main as command_line
from inference_blueprints.deployment.account import Account
from inference_blueprints.deployment.batch.address import API_OUTPUT
from tests.runtime.batch import resources
from tests.runtime.batch.api.emulator import Emulator
from tests.runtime.batch.api.gateway import Gateway
from tests.runtime.batch.authorizer.sts import Sts
from tests.unit.deployment.fake_cloudformation import FakeCloudFormation

SEARCH = ("AKIAIOSFODNN7EXAMPLE", "secret-of-search")
NOBODY = ("AKIAIOSFODNN7NOBODYX", "secret-of-nobody")
BATCH = """\
  teams:
  - {name: search, principals: ["arn:aws:iam::123456789012:role/Search"], monthlyBudgetUsd: 1000}
  batch:
    queues:
    - name: nightly
      model: qwen3-8b
      rates: {usdPerMillionInputTokens: 0.05, usdPerMillionOutputTokens: 0.4}
"""
BLUEPRINT = """\
apiVersion: inference-blueprints/v1alpha1
kind: Blueprint
metadata: {name: chat}
spec:
  environment: {region: us-west-2}
  cluster: {eks: {version: "1.35"}}
  pools:
  - {name: l40s, instanceTypes: [g6e.2xlarge], nodes: {max: 8}}
  models:
  - name: qwen3-8b
    weights: {huggingFace: Qwen/Qwen3-8B}
    engine: {vllm: {}}
    workload: {inputTokens: 2000, outputTokens: 100, peakRequestsPerSecond: 6}
    deployments:
    - {name: main, aggregated: {pool: l40s, replicas: 1, tensorParallelSize: 1}}
"""
LINE = {
    "custom_id": "a",
    "method": "POST",
    "url": "/v1/completions",
    "body": {"model": "qwen3-8b", "prompt": "hi"},
}
REQUEST = json.dumps(LINE).encode() + b"\n"
ABSENT = "batch_" + "0" * 32


@dataclass(frozen=True)
class Ran:
    """How a command ended."""

    code: int
    out: str
    err: str

    def __iter__(self) -> Iterator[object]:
        return iter((self.code, self.out, self.err))


Run = Callable[..., Ran]


@pytest.fixture(scope="module")
def emulator() -> Iterator[Emulator]:
    with Emulator() as running:
        yield running


@pytest.fixture
def platform(emulator: Emulator, monkeypatch: pytest.MonkeyPatch) -> Platform:
    for name, value in {
        "AWS_ENDPOINT_URL": emulator.endpoint,
        "AWS_ACCESS_KEY_ID": SEARCH[0],
        "AWS_SECRET_ACCESS_KEY": SEARCH[1],
        "AWS_DEFAULT_REGION": resources.REGION,
        "COLUMNS": "80",
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)
    urllib3.request("POST", f"{emulator.endpoint}/moto-api/reset")
    return read_platform(resources.create())


@pytest.fixture
def stacks(monkeypatch: pytest.MonkeyPatch) -> FakeCloudFormation:
    fake = FakeCloudFormation()
    monkeypatch.setattr(Account, "client", lambda _, service: {"cloudformation": fake}[service])
    return fake


@pytest.fixture
def gateway(platform: Platform, stacks: FakeCloudFormation) -> Iterator[Gateway]:
    """The deployed API: its stack says where it is, and its authorizer checks the tokens."""
    with Sts() as sts:
        sts.knows(*SEARCH, resources.SEARCH)
        sts.knows(*NOBODY, resources.NOBODY)
        identity = CallerIdentity(
            urllib3.PoolManager(), region=resources.REGION, platform="chat", endpoint=sts.endpoint
        )
        authorizer = Authorizer(
            platform.configuration, identity, region=resources.REGION, remembered_seconds=300
        )
        with Gateway(build(platform).resolve, authorizer.decide) as running:
            stacks.add("chat-Batch", "chat")
            stacks.outputs["chat-Batch"] = {API_OUTPUT: f"{running.address}/v1"}
            yield running


@pytest.fixture
def run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], platform: Platform
) -> Run:
    """Runs a command in a folder with a blueprint that has batch, one that has none, and requests."""
    monkeypatch.chdir(tmp_path)
    Path("chat.yaml").write_text(BLUEPRINT + BATCH, encoding="utf-8")
    Path("plain.yaml").write_text(BLUEPRINT, encoding="utf-8")
    Path("in.jsonl").write_bytes(REQUEST)

    def command(*words: str) -> Ran:
        monkeypatch.setattr(sys, "argv", ["blueprints", *words])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            command_line.main()
        code = ended.value.code
        assert isinstance(code, int | None)
        return Ran(code or 0, *capsys.readouterr())

    return command


def submitted(run: Run, *words: str) -> str:
    ran = run("batch", "submit", "chat.yaml", "in.jsonl", *words)
    assert (ran.code, ran.err) == (0, "")
    return ran.out.strip()


def end(platform: Platform, job_id: str, state: JobState, *errors: JobError) -> Job:
    """End a job with nine answers and a line that failed."""
    changes: dict[str, object] = {
        "counts": plain(RequestCounts(10, 9, 1)),
        "usage": plain(Usage(input_tokens=2_000_000, output_tokens=500_000)),
        "cost_usd": 0.3,
        "errors": [plain(each) for each in errors],
    }
    for name, key in (("output", JobKeys(job_id).output), ("error", JobKeys(job_id).error)):
        content = f'{{"custom_id": "{name}"}}\n'.encode()
        platform.storage.put(key, content)
        file_id = f"file-{name:0<32}".replace("output", "abcdef").replace("error", "fedcb")
        platform.files.put(
            FileRecord(file_id, "search", name, "batch_output", len(content), resources.BUCKET, key, 1)
        )
        changes[f"{name}_file_id"] = file_id
    platform.jobs.move(job_id, "in_progress", before=["validating"], now=1)
    platform.jobs.move(job_id, "finalizing", before=["in_progress"], now=1)
    return platform.jobs.move(job_id, state, before=["finalizing"], now=1, changes=changes)


def test_a_token_is_alone_on_standard_output_and_is_taken(run: Run, gateway: Gateway) -> None:
    ran = run("token", "chat.yaml")
    assert (ran.code, ran.out.count("\n")) == (0, 1)
    assert "15 minutes" in ran.err
    headers = {"Authorization": f"Bearer {ran.out.strip()}"}
    assert urllib3.request("GET", f"{gateway.address}/v1/batches", headers=headers).status == 200


def test_a_file_becomes_a_job_as_the_options_say(run: Run, gateway: Gateway, platform: Platform) -> None:
    job = platform.jobs.get(submitted(run, "--queue", "nightly", "--window", "6h", "--budget", "2.5"))
    assert job is not None
    assert (job.endpoint, job.queue, job.budget_usd) == ("/v1/completions", "nightly", 2.5)
    assert job.expires_at - job.created_at == 6 * 3600


def test_a_large_file_is_sent_in_parts(run: Run, gateway: Gateway) -> None:
    content = REQUEST * (9 * 2**20 // len(REQUEST))
    Path("in.jsonl").write_bytes(content)
    job_id = submitted(run)
    request = JobRequest.from_json(resources.read_object(JobKeys(job_id).request))
    assert resources.read_object(request.inputs[0].key) == content


def test_a_lost_answer_makes_no_second_job(run: Run, gateway: Gateway, platform: Platform) -> None:
    function = gateway.function

    def lose_the_job_once(event: dict[str, object], context: object) -> dict[str, object]:
        if event["path"] == "/v1/batches":
            gateway.lose_answers, gateway.function = 1, function
        return function(event, context)

    gateway.function = lose_the_job_once
    job_id = submitted(run)
    assert [job.id for job in platform.jobs.of_team("search", after=None, limit=9).jobs] == [job_id]


def test_the_jobs_are_a_table(run: Run, gateway: Gateway, platform: Platform) -> None:
    assert run("batch", "status", "chat.yaml").out == "your team has no jobs\n"
    first, second = submitted(run), submitted(run)
    end(platform, first, "completed")
    head, _, *rows = [
        line.split() for line in run("batch", "status", "chat.yaml").out.splitlines() if line.strip()
    ]
    assert head[:5] == ["job", "queue", "state", "requests", "failed"]
    assert [row[:6] for row in rows] == [
        [second, "nightly", "validating", "-", "0", "0.00"],
        [first, "nightly", "completed", "9/10", "1", "0.30"],
    ]
    assert first not in run("batch", "status", "chat.yaml", "--limit", "1").out
    listed = json.loads(run("batch", "status", "chat.yaml", "--output", "json").out)
    assert [job["id"] for job in listed] == [second, first]


def test_a_job_says_what_went_wrong(run: Run, gateway: Gateway, platform: Platform) -> None:
    job_id = submitted(run)
    end(platform, job_id, "failed", JobError("invalid_lines", "mend them", line=7))
    code, out, err = run("batch", "status", "chat.yaml", job_id)
    assert code == 0
    assert job_id in str(out)
    assert "invalid_lines: line 7: mend them" in str(err)
    assert f"results BLUEPRINT {job_id} --errors" in str(err)


@pytest.mark.parametrize(("state", "code"), [("completed", 0), ("failed", 1)])
def test_watching_ends_with_the_job(
    run: Run, gateway: Gateway, platform: Platform, state: JobState, code: int
) -> None:
    job_id = submitted(run)
    end(platform, job_id, state, *([JobError("shards_failed", "redrive it")] if code else []))
    ran = run("batch", "watch", "chat.yaml", job_id)
    assert (ran.code, ran.out) == (code, "")
    assert ran.err.startswith(f"{job_id}: {state}, 9 of 10 requests, 1 failed, 0.30 USD, due 20")
    assert ("redrive it" in ran.err) == bool(code)


def test_submitting_can_wait_for_the_end(
    run: Run, gateway: Gateway, platform: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    def end_while_it_waits(_seconds: float) -> None:
        [job] = platform.jobs.of_team("search", after=None, limit=1).jobs
        end(platform, job.id, "completed")

    monkeypatch.setattr(time, "sleep", end_while_it_waits)
    ran = run("batch", "submit", "chat.yaml", "in.jsonl", "--wait")
    states = [line.split()[1].rstrip(",") for line in ran.err.splitlines() if line.startswith("batch_")]
    assert (ran.code, states) == (0, ["validating", "completed"])
    assert ran.out.startswith("batch_")


def test_results_go_to_standard_output_or_a_file(
    run: Run, gateway: Gateway, platform: Platform, tmp_path: Path
) -> None:
    job_id = submitted(run)
    end(platform, job_id, "completed")
    assert run("batch", "results", "chat.yaml", job_id).out == '{"custom_id": "output"}\n'
    ran = run("batch", "results", "chat.yaml", job_id, "--errors", "--output", "failed.jsonl")
    assert (ran.code, ran.out) == (0, "")
    assert Path("failed.jsonl").read_bytes() == b'{"custom_id": "error"}\n'
    assert [path.name for path in tmp_path.glob("*partial*")] == []


def test_a_job_is_cancelled(run: Run, gateway: Gateway) -> None:
    job_id = submitted(run)
    assert run("batch", "cancel", "chat.yaml", job_id).out == f"{job_id}: cancelling\n"


def test_a_job_that_cannot_be_redriven_says_why(run: Run, gateway: Gateway) -> None:
    ran = run("batch", "redrive", "chat.yaml", submitted(run))
    assert (ran.code, ran.out) == (1, "")
    assert "only one that failed or expired" in ran.err


def test_costs_are_summed_up(run: Run, gateway: Gateway, platform: Platform) -> None:
    assert "no jobs since" in run("batch", "cost", "chat.yaml").out
    for _ in range(2):
        end(platform, submitted(run), "completed")
    shown = run("batch", "cost", "chat.yaml").out
    rows = [line.split() for line in shown.splitlines()]
    assert ["search", "qwen3-8b", "nightly", "2", "18", "4,000,000", "1,000,000", "0.60"] in rows
    assert "0.60 USD in all" in shown
    [cost] = json.loads(run("batch", "cost", "chat.yaml", "--output", "json").out)
    assert (cost["team"], cost["jobs"], cost["usd"]) == ("search", 2, pytest.approx(0.6))


@pytest.mark.parametrize(
    ("words", "messages"),
    [
        (["token", "plain.yaml"], ["has no batch", "spec.batch.queues"]),
        (["batch", "status", "plain.yaml"], ["has no batch", "spec.batch.queues"]),
        (["batch", "submit", "chat.yaml", "in.jsonl", "--queue", "x"], ["--queue x", "queues are nightly"]),
        (["batch", "submit", "chat.yaml", "in.jsonl", "--window", "soon"], ["--window soon", "6h or 2d"]),
        (["batch", "submit", "chat.yaml", "in.jsonl", "--budget", "1001"], ["budget_usd", "to 1000"]),
        (["batch", "submit", "chat.yaml", "none.jsonl"], ["none.jsonl: cannot be read"]),
        (["batch", "submit", "chat.yaml", "empty.jsonl"], ["empty.jsonl: is empty"]),
        (["batch", "submit", "chat.yaml", "rows.jsonl"], ["rows.jsonl:1: is no request", "custom_id"]),
        (["batch", "submit", "chat.yaml", "huge.jsonl"], ["536,870,913 bytes", "submit a manifest"]),
        (["batch", "status", "chat.yaml", ABSENT], [f"No such batch: {ABSENT}", "lists the jobs"]),
        (["batch", "status", "chat.yaml", "../files"], ["No such batch", "lists the jobs"]),
        (["batch", "results", "chat.yaml", ABSENT], ["No such batch"]),
    ],
)
def test_what_is_wrong_is_said_in_a_line(
    run: Run, gateway: Gateway, words: list[str], messages: list[str]
) -> None:
    Path("empty.jsonl").touch()
    Path("rows.jsonl").write_text("a,b\n", encoding="utf-8")
    with Path("huge.jsonl").open("wb") as huge:
        huge.truncate(512 * 2**20 + 1)
    ran = run(*words)
    assert (ran.code, ran.out, ran.err.count("\n")) == (1, "", 1)
    assert all(message in ran.err for message in messages), ran.err


def test_results_of_a_job_that_runs_are_to_be_waited_for(run: Run, gateway: Gateway) -> None:
    ran = run("batch", "results", "chat.yaml", submitted(run))
    assert ran.code == 1
    assert "has no results, it is validating; `blueprints batch watch" in ran.err


def test_a_caller_of_no_team_is_told_whom_to_ask(
    run: Run, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", NOBODY[0])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", NOBODY[1])
    ran = run("batch", "status", "chat.yaml")
    assert ran.code == 1
    assert "Nobody" in ran.err
    assert "spec.teams" in ran.err


def test_without_a_deployment_that_is_said(run: Run, stacks: FakeCloudFormation) -> None:
    ran = run("batch", "status", "chat.yaml")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err == "chat-Batch: is not deployed in us-west-2; run `blueprints deploy` first\n"


def test_where_nobody_answers_it_is_said_from_where_somebody_would(run: Run) -> None:
    with socket.socket() as taken:  # Bound and not listening: nobody else gets the port.
        taken.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
        ran = run("batch", "status", "chat.yaml", "--address", address)
    assert ran.code == 1
    assert "127.0.0.1: is not reached: " in ran.err
    assert "within the platform's VPC" in ran.err
    assert "0x" not in ran.err


class _Stranger(BaseHTTPRequestHandler):
    """API Gateway where a request comes by another VPC's endpoint."""

    def do_GET(self) -> None:
        self.send_response(403)
        self.end_headers()
        self.wfile.write(b'{"message":"Forbidden"}')

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def test_another_way_in_is_told_from_the_api_s_own_refusal(run: Run) -> None:
    with HTTPServer(("127.0.0.1", 0), _Stranger) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        ran = run("batch", "status", "chat.yaml", "--address", f"http://127.0.0.1:{server.server_port}/v1")
        server.shutdown()
        thread.join()
    assert ran.code == 1
    assert "answers 403, and not as the batch API does" in ran.err
    assert "--address" in ran.err
