"""Batch from a client's file to its answers: stacks on the emulator, real workers, simulated engines."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import openai
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import urllib3
from openai.types import Batch
from pyarrow import csv
from rich.console import Console

from inference_blueprints import resources
from inference_blueprints.loading import load_blueprint
from inference_blueprints.serving.plan import build_plan
from inference_local.batch.batch_job import local_token
from inference_local.local_platform import LocalPlatform
from inference_local.run_state import RunningBatch, RunningSignals, RunState, claim
from inference_local.run_steps import Steps
from inference_local.serving.platform_parts import PlatformPart
from inference_local.signal_store import SignalCounts
from tests.local.batch_client import (
    MODEL,
    PATIENCE_SECONDS,
    has_ended,
    line,
    rows,
    stopped_workers,
    submit,
    wait,
)
from tests.local.conftest import BLUEPRINTS

DATA = "data-of-ads"
pytestmark = pytest.mark.faults


@dataclass(frozen=True)
class Up:
    platform: LocalPlatform
    batch: RunningBatch
    signals: RunningSignals
    parts: tuple[PlatformPart, ...]
    steps: Steps
    directory: Path


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    directory = tmp_path_factory.mktemp("batch")
    loaded = load_blueprint(str(with_data(tmp_path_factory.mktemp("blueprint"))))
    with LocalPlatform(loaded, build_plan(loaded.blueprint), directory) as platform:
        steps = Steps(Console(file=io.StringIO()), platform.scope.step_titles)
        deployed = platform.start(steps)
        assert deployed.batch
        assert deployed.signals
        yield Up(platform, deployed.batch, deployed.signals, deployed.parts, steps, directory)
        platform.check()  # whatever the tests asked, every process still runs


def with_data(directory: Path) -> Path:
    """Return the shipped blueprint's file, where the team has data in S3."""
    shipped = (resources.blueprints_directory() / "batch-g6e.yaml").read_text()
    text = shipped.replace(
        "    monthlyBudgetUsd: 1000\n", f"{'':4}monthlyBudgetUsd: 1000\n{'':4}dataPrefixes: [s3://{DATA}/]\n"
    )
    assert text != shipped
    path = directory / "batch-g6e.yaml"
    path.write_text(text)
    return path


@dataclass(frozen=True)
class Data:
    """What the team has in S3: data of its own, and a prefix of the batch bucket."""

    s3: Any
    batch_bucket: str


@pytest.fixture(scope="module")
def data(up: Up) -> Data:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in up.batch.environment.items():
            patch.setenv(name, value)
        session = boto3.Session()
        s3, stacks = session.client("s3"), session.client("cloudformation").describe_stacks()["Stacks"]
    s3.create_bucket(Bucket=DATA, CreateBucketConfiguration={"LocationConstraint": "us-west-2"})
    outputs = {
        each["OutputKey"]: each["OutputValue"] for stack in stacks for each in stack.get("Outputs", [])
    }
    return Data(s3, outputs["BatchBucketName"])


@pytest.fixture(scope="module")
def client(up: Up) -> openai.OpenAI:
    return openai.OpenAI(base_url=up.batch.base_url, api_key=lambda: local_token(up.batch), max_retries=0)


def events(up: Up, batch: Batch) -> list[dict[str, Any]]:
    """Return what workers say of a job, each worker's words in their order."""
    logs = [path.read_text() for path in sorted((up.directory / "batch" / "logs").iterdir())]
    return [json.loads(event) for event in "".join(logs).splitlines() if batch.id in event]


def happened(up: Up, batch: Batch) -> list[str]:
    return [event["event"] for event in events(up, batch)]


def test_a_job_whose_workers_are_killed_answers_every_line_once(up: Up, client: openai.OpenAI) -> None:
    outcomes = up.platform.run_batch_jobs(up.steps)
    assert outcomes is not None
    [outcome] = outcomes
    assert (outcome.queue, outcome.team, outcome.state) == ("nightly", "ads", "completed")
    assert outcome.requests == 400
    assert outcome.is_whole
    assert outcome.workers_killed == 2
    assert outcome.cost_usd > 0
    assert outcome.signals == SignalCounts("product-captions", written=400, missing=0, wrong=0)
    # The same from what the API has.
    batch = client.batches.list(limit=1).data[0]
    answers = rows(client, batch.output_file_id)
    assert Counter(row["custom_id"] for row in answers) == Counter(f"line-{each}" for each in range(400))
    assert {row["response"]["body"]["usage"]["completion_tokens"] for row in answers} == {50}
    assert batch.error_file_id is None
    assert batch.request_counts is not None
    assert (batch.request_counts.completed, batch.request_counts.failed) == (400, 0)
    # The shard was in the middle, and came to another worker.
    taken = [event for event in events(up, batch) if event["event"] == "shard_taken"]
    assert sorted(event["received"] for event in taken) == [1, 2]


def test_a_bad_line_fails_the_job_and_names_itself(client: openai.OpenAI) -> None:
    lines = [line("first"), b'{"custom_id": "second", "method": "GET"}', line("third")]
    batch = wait(client, submit(client, lines), has_ended)
    assert batch.status == "failed"
    assert batch.errors is not None
    assert batch.output_file_id is None
    [error] = rows(client, batch.error_file_id)
    assert (error["custom_id"], error["error"]["line"]) == ("second", 2)


def test_a_bad_line_that_may_be_skipped_is_in_the_error_file(client: openai.OpenAI) -> None:
    lines = [line("first"), b"not JSON", line("third")]
    batch = wait(client, submit(client, lines, skip_invalid="true"), has_ended)
    assert batch.status == "completed"
    assert sorted(row["custom_id"] for row in rows(client, batch.output_file_id)) == ["first", "third"]
    [error] = rows(client, batch.error_file_id)
    assert (error["custom_id"], error["error"]["line"]) == (None, 2)


def submit_rows(client: openai.OpenAI, data: Data, name: str, content: bytes) -> Batch:
    """Make a job of rows and a template by a manifest, and return it when the event has made it."""
    data.s3.put_object(Bucket=DATA, Key=name, Body=content)
    manifest = {
        "inputs": [f"s3://{DATA}/{name}"],
        "template": {"text": "What is {{ name }} for {{ price }}?", "parameters": {"max_tokens": 5}},
        "metadata": {"of": name},
    }
    data.s3.put_object(
        Bucket=data.batch_bucket, Key=f"nightly/ads/{name}.manifest.json", Body=json.dumps(manifest).encode()
    )
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        for batch in client.batches.list(limit=5):
            if (batch.metadata or {}).get("of") == name:
                return batch
        assert time.monotonic() < deadline, name
        time.sleep(0.3)


def test_rows_in_parquet_and_csv_become_requests(client: openai.OpenAI, data: Data) -> None:
    names = [f"shoe-{each}" for each in range(30)]
    table = pa.table({"custom_id": names, "name": names, "price": [12.5] * len(names)})
    parquet, text = io.BytesIO(), io.BytesIO()
    pq.write_table(table, parquet, row_group_size=7)
    csv.write_csv(table, text)
    jobs = [
        submit_rows(client, data, "rows.parquet", parquet.getvalue()),
        submit_rows(client, data, "rows.csv", text.getvalue()),
    ]
    for job in jobs:
        batch = wait(client, job, has_ended)
        assert batch.status == "completed", batch
        assert sorted(row["custom_id"] for row in rows(client, batch.output_file_id)) == sorted(names)


def test_damaged_parquet_fails_its_job_with_the_reason(client: openai.OpenAI, data: Data) -> None:
    batch = wait(client, submit_rows(client, data, "damaged.parquet", b"PAR1 and no more PAR1"), has_ended)
    assert batch.status == "failed"
    assert batch.errors is not None
    messages = {error.code: error.message for error in batch.errors.data or []}
    assert (messages["unreadable_input"] or "").startswith(f"s3://{DATA}/damaged.parquet: ")
    [error] = rows(client, batch.error_file_id)
    assert error["error"]["code"] == "unreadable_input"


def test_a_cancelled_job_lets_its_workers_go(up: Up, client: openai.OpenAI) -> None:
    batch = submit(client, [line(f"long-{each}", tokens=2000) for each in range(200)])
    wait(client, batch, lambda each: has_ended(each) or "shard_taken" in happened(up, batch))
    cancelled = wait(client, client.batches.cancel(batch.id), has_ended)
    assert cancelled.status == "cancelled"
    wait(client, batch, lambda _: "task_gone" in happened(up, batch))
    following = wait(client, submit(client, [line("after")]), has_ended)
    assert following.status == "completed"
    assert happened(up, batch) == ["shard_taken", "task_gone"]


def test_a_shard_that_could_not_be_done_is_redriven(data: Data, client: openai.OpenAI) -> None:
    # Long prompts are in a shard of their own.
    words = [*("word" for _ in range(20)), *("word " * 2500 for _ in range(3))]
    lines = [line(f"line-{number}", prompt=prompt) for number, prompt in enumerate(words)]
    s3, bucket = data.s3, data.batch_bucket
    with stopped_workers():
        batch = wait(client, submit(client, lines), lambda each: each.status == "in_progress")
        shards = s3.list_objects_v2(Bucket=bucket, Prefix=f"jobs/{batch.id}/shards/")["Contents"]
        assert len(shards) == 2
        key = shards[-1]["Key"]
        content = s3.get_object(Bucket=bucket, Key=key)["Body"].read()
        s3.delete_object(Bucket=bucket, Key=key)
    failed = wait(client, batch, has_ended)
    assert failed.status == "failed"
    assert failed.errors is not None
    assert failed.errors.data is not None
    assert failed.errors.data[0].code == "shards_failed"
    assert sorted(row["custom_id"] for row in rows(client, failed.output_file_id)) == sorted(
        f"line-{number}" for number in range(20)
    )
    s3.put_object(Bucket=bucket, Key=key, Body=content)

    redriven = client.post(f"/batches/{batch.id}/redrive", cast_to=Batch, body={})
    assert (redriven.status, redriven.failed_at, redriven.output_file_id) == ("in_progress", None, None)
    ended = wait(client, redriven, has_ended)
    assert ended.status == "completed"
    assert ended.error_file_id is None
    # An independent count: each line once, of both attempts.
    answers = Counter(row["custom_id"] for row in rows(client, ended.output_file_id))
    assert answers == Counter(f"line-{number}" for number in range(len(lines)))
    assert ended.request_counts is not None
    assert ended.request_counts.model_dump() == {"total": len(lines), "completed": len(lines), "failed": 0}


def test_counts_move_while_a_job_runs_and_stay_when_it_is_cancelled(client: openai.OpenAI) -> None:
    lines = [line(f"short-{number}") for number in range(20)]
    lines += [line(f"long-{number}", tokens=12_000) for number in range(4)]
    seen: list[tuple[int, int, int]] = []

    def has_moved(batch: Batch) -> bool:
        counts = batch.request_counts
        assert counts is not None
        seen.append((counts.total, counts.completed, counts.failed))
        return counts.completed >= 20 or has_ended(batch)

    batch = wait(client, submit(client, lines), has_moved)
    assert batch.status == "in_progress"
    assert seen[-1] == (24, 20, 0)
    assert seen == sorted(seen)
    ended = wait(client, client.batches.cancel(batch.id), has_ended)
    assert ended.status == "cancelled"
    assert ended.request_counts is not None
    answers, errors = rows(client, ended.output_file_id), rows(client, ended.error_file_id)
    counts = ended.request_counts
    assert (counts.completed, counts.failed, counts.total) == (len(answers), len(errors), 24)
    assert len(answers) >= 20
    assert {row["error"]["code"] for row in errors} == {"batch_cancelled"}
    found = Counter(row["custom_id"] for row in [*answers, *errors])
    assert found == Counter(json.loads(each)["custom_id"] for each in lines)


def test_commands_sign_their_requests_and_know_what_was_spent(up: Up, client: openai.OpenAI) -> None:
    wait(client, submit(client, [line("paid")]), has_ended)
    sts = boto3.client(
        "sts",
        region_name="us-west-2",
        endpoint_url=up.batch.environment["AWS_ENDPOINT_URL"],
        aws_access_key_id=up.batch.environment["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=up.batch.environment["AWS_SECRET_ACCESS_KEY"],
    )
    role = sts.assume_role(RoleArn=up.batch.role, RoleSessionName="cost")["Credentials"]
    words = ["batch", "cost", "batch-g6e", "--output", "json", "--address", up.batch.base_url]
    ran = subprocess.run(
        [str(BLUEPRINTS), *words],
        env={
            **os.environ,
            **up.batch.environment,
            "AWS_ACCESS_KEY_ID": role["AccessKeyId"],
            "AWS_SECRET_ACCESS_KEY": role["SecretAccessKey"],
            "AWS_SESSION_TOKEN": role["SessionToken"],
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    costs = json.loads(ran.stdout)
    jobs: list[dict[str, Any]] = [each.to_dict() for each in client.batches.list()]
    assert (costs["team"], costs["running_usd"]) == (up.batch.team, 0)
    assert costs["spent_usd"] == pytest.approx(sum(each["cost_usd"] for each in jobs))
    assert costs["spent_usd"] > 0
    assert [each["jobs"] for each in costs["data"]] == [len(jobs)]


def test_a_printed_token_opens_the_api_and_another_does_not(up: Up, tmp_path: Path) -> None:
    with claim(tmp_path) as right:
        right.publish(RunState(os.getpid(), "batch-g6e", "ready", batch=up.batch))
        printed = subprocess.run(
            [str(BLUEPRINTS), "local", "token", "--run-directory", str(tmp_path)],
            capture_output=True,
            text=True,
            check=True,
        )
    for token, status in ((printed.stdout.strip(), 200), ("none", 401)):
        headers = {"Authorization": f"Bearer {token}"}
        assert urllib3.request("GET", f"{up.batch.base_url}/batches", headers=headers).status == status


def test_answers_are_read_from_the_store_and_a_later_job_s_replace_them(
    up: Up, client: openai.OpenAI, tmp_path: Path
) -> None:
    def read(*keys: str) -> tuple[int, dict[str, Any]]:
        words = ["signals", "product-captions", *keys, "--output", "json", "--run-directory", str(tmp_path)]
        ran = subprocess.run([str(BLUEPRINTS), "local", *words], capture_output=True, text=True, check=False)
        return ran.returncode, {record["key"]: record["value"] for record in json.loads(ran.stdout)}

    def answers(*custom_ids: str) -> dict[str, str]:
        batch = wait(
            client, submit(client, [line(each) for each in custom_ids], signal="product-captions"), has_ended
        )
        assert batch.status == "completed"
        return {
            row["custom_id"]: row["response"]["body"]["choices"][0]["message"]["content"]
            for row in rows(client, batch.output_file_id)
        }

    with claim(tmp_path) as right:
        right.publish(RunState(os.getpid(), "batch-g6e", "ready", signals=up.signals))
        first = answers("shoe-1", "shoe-2")
        assert read("shoe-1", "shoe-2") == (0, first)
        second = answers("shoe-2")
        assert read("shoe-1", "shoe-2", "shoe-3") == (1, {"shoe-1": first["shoe-1"], **second})


def test_without_signals_nothing_is_read(tmp_path: Path) -> None:
    command = [str(BLUEPRINTS), "local", "signals", "x", "y", "--run-directory", str(tmp_path)]
    refused = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "no signal store is running" in refused.stderr


def test_without_batch_there_is_no_token(tmp_path: Path) -> None:
    refused = subprocess.run(
        [str(BLUEPRINTS), "local", "token", "--run-directory", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "no batch API is running" in refused.stderr


def test_the_parts_say_how_real_batch_is(up: Up) -> None:
    states = {part.name: part.state for part in up.parts if part.name.startswith("Batch")}
    assert states == {
        "Batch API": "emulated",
        "Batch jobs": "emulated",
        "Batch workers": "real",
        "Batch worker scaling": "stubbed",
        "Batch worker image": "stubbed",
    }
    (workers,) = (part for part in up.parts if part.name == "Batch workers")
    assert re.match(rf"2 of {MODEL}:", workers.detail)
