"""What `blueprints batch …` cannot do, it says in a line, with what to do."""

from __future__ import annotations

import socket
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest

from batch.jobs.settings import BatchPlatform
from tests.runtime.batch.api.gateway import Gateway
from tests.unit.cli.batch_commands import ABSENT, NOBODY, Run, end, submitted
from tests.unit.operate.fake_cloudformation import FakeCloudFormation


@pytest.mark.parametrize(
    ("words", "messages"),
    [
        (["token", "plain.yaml"], ["has no batch", "spec.batch.queues"]),
        (["batch", "status", "plain.yaml"], ["has no batch", "spec.batch.queues"]),
        (["batch", "submit", "chat.yaml", "in.jsonl", "--queue", "x"], ["--queue x", "queues are nightly"]),
        (["batch", "submit", "chat.yaml", "in.jsonl", "--window", "soon"], ["--window soon", "6h or 2d"]),
        (["batch", "submit", "chat.yaml", "in.jsonl", "--budget", "1001"], ["budget_usd", "to 1000"]),
        (["batch", "cost", "chat.yaml", "--month", "November"], ["--month November", "such as 2026-11"]),
        (["batch", "submit", "chat.yaml", "none.jsonl"], ["none.jsonl: cannot be read"]),
        (["batch", "submit", "chat.yaml", "empty.jsonl"], ["empty.jsonl: is empty"]),
        (
            ["batch", "submit", "chat.yaml", "rows.jsonl"],
            ["rows.jsonl:1: is not a batch request", "custom_id"],
        ),
        (
            ["batch", "submit", "chat.yaml", "in.parquet"],
            ["in.parquet: got a file of rows", "manifest", "template"],
        ),
        (["batch", "submit", "chat.yaml", "huge.jsonl"], ["536,870,913 bytes", "submit a manifest"]),
        (["batch", "status", "chat.yaml", ABSENT], [f"No such batch: {ABSENT}", "to list the jobs"]),
        (["batch", "status", "chat.yaml", "../files"], ["No such batch", "to list the jobs"]),
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
    assert "has no results, its state is validating; run `blueprints batch watch" in ran.err


def test_a_caller_of_no_team_is_told_whom_to_ask(
    run: Run, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", NOBODY[0])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", NOBODY[1])
    ran = run("batch", "status", "chat.yaml")
    assert ran.code == 1
    assert "Nobody" in ran.err
    assert "spec.teams" in ran.err


def test_credentials_that_are_not_valid_are_to_be_renewed(
    run: Run, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "another")
    ran = run("batch", "submit", "chat.yaml", "in.jsonl")
    assert (ran.code, ran.out) == (1, "")
    assert "The signature is wrong or has expired" in ran.err
    assert "sign in again" in ran.err


def test_commands_need_nothing_of_sts(run: Run, gateway: Gateway, platform: BatchPlatform) -> None:
    gateway.authorizer = None  # It would ask STS; without it no token is known.
    job_id = submitted(run)
    end(platform, job_id, "completed")
    for words in (["status", "chat.yaml"], ["results", "chat.yaml", job_id], ["cost", "chat.yaml"]):
        assert run("batch", *words).code == 0


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
    assert "127.0.0.1: cannot be reached: " in ran.err
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
        thread = Thread(target=server.handle_request)
        thread.start()
        ran = run("batch", "status", "chat.yaml", "--address", f"http://127.0.0.1:{server.server_port}/v1")
        thread.join()
    assert ran.code == 1
    assert "got status 403, but not from the batch API" in ran.err
    assert "--address" in ran.err
