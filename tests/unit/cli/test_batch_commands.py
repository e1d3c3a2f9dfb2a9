"""`blueprints token` and `blueprints batch …`, against the API itself over AWS in an emulation."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
import urllib3

from batch.contracts.request import JobRequest
from batch.jobs.job_table import JobError
from batch.jobs.settings import BatchPlatform
from batch.scheduling.admissions import Admission, AdmissionTable
from inference_contracts.batch_keys import JobKeys
from inference_contracts.batch_names import JobState
from tests.runtime.batch import resources
from tests.runtime.batch.api.gateway import Gateway
from tests.unit.cli.batch_commands import REQUEST, Run, end, submitted


def test_a_token_is_alone_on_standard_output_and_is_taken(run: Run, gateway: Gateway) -> None:
    ran = run("token", "chat.yaml")
    assert (ran.code, ran.out.count("\n")) == (0, 1)
    assert "10 minutes" in ran.err
    headers = {"Authorization": f"Bearer {ran.out.strip()}"}
    assert urllib3.request("GET", f"{gateway.address}/v1/batches", headers=headers).status == 200


def test_a_file_becomes_a_job_as_the_options_say(run: Run, gateway: Gateway, platform: BatchPlatform) -> None:
    job = platform.jobs.get(submitted(run, "--queue", "nightly", "--window", "6h", "--budget", "2.5"))
    assert job is not None
    assert (job.endpoint, job.queue, job.budget_usd) == ("/v1/completions", "nightly", 2.5)
    assert job.expires_at - job.created_at == 6 * 3600


def test_answers_become_the_signal_that_is_named(run: Run, gateway: Gateway, platform: BatchPlatform) -> None:
    job = platform.jobs.get(submitted(run, "--signal", "product-captions"))
    assert job is not None
    assert job.publication is not None
    assert job.publication.signal == "product-captions"
    ran = run("batch", "submit", "chat.yaml", "in.jsonl", "--signal", "captions")
    assert (ran.code, ran.out) == (1, "")
    assert "got --signal captions; signals are product-captions" in ran.err


def test_a_large_file_is_sent_in_parts(run: Run, gateway: Gateway) -> None:
    content = REQUEST * (9 * 2**20 // len(REQUEST))
    Path("in.jsonl").write_bytes(content)
    job_id = submitted(run)
    request = JobRequest.from_json(resources.read_object(JobKeys(job_id).request))
    assert resources.read_object(request.inputs[0].key) == content


def test_a_lost_answer_makes_no_second_job(run: Run, gateway: Gateway, platform: BatchPlatform) -> None:
    function = gateway.function

    def lose_the_job_once(event: dict[str, object], context: object) -> dict[str, object]:
        if event["path"] == "/v1/batches":
            gateway.lose_answers, gateway.function = 1, function
        return function(event, context)

    gateway.function = lose_the_job_once
    job_id = submitted(run)
    assert [job.id for job in platform.jobs.of_team("search", after=None, limit=9).jobs] == [job_id]


def test_the_jobs_are_a_table(run: Run, gateway: Gateway, platform: BatchPlatform) -> None:
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


def test_a_job_says_what_went_wrong(run: Run, gateway: Gateway, platform: BatchPlatform) -> None:
    job_id = submitted(run)
    end(platform, job_id, "failed", JobError("invalid_lines", "mend them", line=7))
    code, out, err = run("batch", "status", "chat.yaml", job_id)
    assert code == 0
    assert job_id in out
    assert "invalid_lines: line 7: mend them" in err
    assert f"results BLUEPRINT {job_id} --errors" in err


@pytest.mark.parametrize(("state", "code"), [("completed", 0), ("failed", 1)])
def test_watching_ends_with_the_job(
    run: Run, gateway: Gateway, platform: BatchPlatform, state: JobState, code: int
) -> None:
    job_id = submitted(run)
    end(platform, job_id, state, *([JobError("shards_failed", "redrive it")] if code else []))
    ran = run("batch", "watch", "chat.yaml", job_id)
    assert (ran.code, ran.out) == (code, "")
    assert ran.err.startswith(f"{job_id}: {state}, 9 of 10 requests, 1 failed, 0.30 USD, due 20")
    assert ("redrive it" in ran.err) == bool(code)


def test_submitting_can_wait_for_the_end(
    run: Run, gateway: Gateway, platform: BatchPlatform, monkeypatch: pytest.MonkeyPatch
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
    run: Run, gateway: Gateway, platform: BatchPlatform, tmp_path: Path
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


def test_costs_are_summed_up(run: Run, gateway: Gateway, platform: BatchPlatform) -> None:
    assert "0.00 USD spent, 0.00 USD" in run("batch", "cost", "chat.yaml").out
    for _ in range(2):
        end(platform, submitted(run), "completed")
    running = platform.jobs.get(submitted(run))
    assert running is not None
    admission = Admission(running.id, 1, "token", 3, 0, 60.0, 400.0, places=2)
    AdmissionTable(platform.table).put(admission, now=int(time.time()))
    platform.jobs.move(running.id, "in_progress", before=["validating"], now=1)
    shown = run("batch", "cost", "chat.yaml").out
    rows = [line.split() for line in shown.splitlines()]
    assert ["qwen3-8b", "nightly", "2", "18", "2", "4,000,000", "1,000,000", "0.60"] in rows
    assert "0.60 USD spent, 400.00 USD estimated for running jobs, 599.40 USD left of 1,000.00 USD" in shown
    costs = json.loads(run("batch", "cost", "chat.yaml", "--output", "json").out)
    assert (costs["team"], costs["data"][0]["jobs"]) == ("search", 2)
    assert costs["spent_usd"] == pytest.approx(0.6)
    before = run("batch", "cost", "chat.yaml", "--month", "2020-01").out
    assert before.startswith("search, 2020-01: 0.00 USD spent, 0.00 USD estimated")
