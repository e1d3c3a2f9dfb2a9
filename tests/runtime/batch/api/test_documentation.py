"""The examples of docs/batch.md, as they are, but for where the platform is."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from batch.api.handler import build
from batch.contracts.generated_image import GeneratedImage
from batch.jobs.file_table import FileRecord
from batch.jobs.identifiers import result_file
from batch.jobs.manifest import read_manifest
from batch.jobs.settings import BatchPlatform
from batch.preparation.line_checks import CheckedLine, check_request
from inference_blueprints.resources import root
from inference_contracts.batch_body_fields import IMAGES_PATH
from inference_contracts.batch_configuration import Configuration
from inference_contracts.batch_keys import JobKeys
from inference_contracts.batch_limits import MAX_REQUEST_BYTES, MAX_UPLOAD_BYTES
from inference_contracts.batch_names import STATES, TRANSITIONS
from tests.runtime.batch import resources
from tests.runtime.batch.api.gateway import GATEWAY_RESPONSES, Gateway
from tests.runtime.batch.preparation.test_request_checks import REQUEST

PAGE = (root() / "docs" / "batch.md").read_text(encoding="utf-8")
BATCH = root() / "runtime" / "batch"
CODE = [*(BATCH / "api").glob("*.py"), BATCH / "jobs" / "fields.py"]


def fences(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def rows(heading: str) -> list[list[str]]:
    """Return the cells of the table below a heading."""
    section = PAGE.split(f"\n{heading}\n")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("| ")][1:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


@pytest.fixture
def gateway(platform: BatchPlatform) -> Iterator[Gateway]:
    """Every token is of team search: the examples make theirs of credentials that no STS knows."""

    def decide(event: dict[str, Any]) -> dict[str, Any]:
        statement = {"Effect": "Allow", "Resource": event["methodArn"]}
        return {"policyDocument": {"Statement": [statement]}, "context": {"principal": resources.SEARCH}}

    with Gateway(build(platform).resolve, decide) as running:
        yield running


def complete(platform: BatchPlatform, job: str) -> None:
    """End a job with an answer."""
    platform.storage.put(JobKeys(job).output, b"answer\n")
    output = FileRecord(
        id=result_file(job, "output"),
        team="search",
        filename="output.jsonl",
        purpose="batch_output",
        size=7,
        bucket=resources.BUCKET,
        key=JobKeys(job).output,
        created_at=1,
    )
    platform.files.put(output)
    platform.jobs.move(job, "in_progress", before=["validating"], now=1)
    platform.jobs.move(job, "finalizing", before=["in_progress"], now=1)
    changes = {"output_file_id": output.id}
    platform.jobs.move(job, "completed", before=["finalizing"], now=1, changes=changes)


def test_the_examples_run(
    gateway: Gateway, platform: BatchPlatform, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("requests.jsonl").write_bytes(b"{}\n")
    Path("large.jsonl").write_bytes(b"x" * (5 * 2**20))
    submit, look, upload, read_images = (
        example.replace("https://a1b2c3d4e5.execute-api.us-west-2.amazonaws.com/prod", gateway.address)
        for example in fences("python")
    )
    names: dict[str, Any] = {}

    exec(submit, names)  # noqa: S102
    job = names["batch"]
    assert (job.status, job.queue, job.budget_usd) == ("validating", "nightly", 25)
    exec(look, names)  # noqa: S102
    assert not Path("answers.jsonl").exists()

    complete(platform, job.id)
    exec(look, names)  # noqa: S102
    assert Path("answers.jsonl").read_bytes() == b"answer\n"

    image = GeneratedImage(job.id, "000000-0000-0-000", 0, 0, "png")
    answer = {"data": [{"file_id": image.file_id}]}
    row = {"custom_id": "cup-1", "response": {"status_code": 200, "body": answer}, "error": None}
    platform.storage.put(image.key, b"a cup")
    platform.storage.put(JobKeys(job.id).output, json.dumps(row).encode() + b"\n")
    exec(read_images, names)  # noqa: S102
    assert Path("cup-1-0.png").read_bytes() == b"a cup"

    exec(upload, names)  # noqa: S102
    assert names["upload"].file.bytes == 5 * 2**20


@pytest.mark.clock
def test_the_commands_run(gateway: Gateway, platform: BatchPlatform, tmp_path: Path) -> None:
    (tmp_path / "requests.jsonl").write_bytes(b"{}\n")
    token = tmp_path / "blueprints"
    token.write_text("#!/bin/sh\necho token of $2\n", encoding="utf-8")
    token.chmod(0o755)
    [script] = [each for each in fences("sh") if "ask batches" in each]
    lines = script.replace(
        "https://a1b2c3d4e5.execute-api.us-west-2.amazonaws.com/prod", gateway.address
    ).splitlines()
    submit, read = lines[:-1], [*lines[:4], "JOB=$1", lines[-1]]

    def run(commands: list[str], *words: str) -> list[str]:
        text = "\n".join(["set -euo pipefail", *commands])
        path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
        ran = subprocess.run(
            ["bash", "-c", text, "bash", *words],
            cwd=tmp_path,
            env={"PATH": path, "HOME": str(tmp_path)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert (ran.returncode, ran.stderr) == (0, "")
        return ran.stdout.split()

    assert run(submit) == ["validating"]
    [job] = platform.jobs.of_team("search", after=None, limit=2).jobs
    complete(platform, job.id)
    run(read, job.id)
    assert (tmp_path / "answers.jsonl").read_bytes() == b"answer\n"


def test_the_manifest_is_one() -> None:
    configuration = Configuration.from_json(resources.configuration_text())
    text, _, _ = fences("json")

    [queue], [team, _] = configuration.queues, configuration.teams
    signals = configuration.signals_of(team.name)
    manifest = read_manifest(text, queue=queue, team=team, signals=signals)

    assert (manifest.priority, manifest.deadline_hours, manifest.budget_usd) == (20, 12, 50)
    assert manifest.template is not None
    assert manifest.signal == signals["product-captions"]


def test_the_line_for_images_and_its_answer_are_right() -> None:
    _, line, text = fences("json")
    body = json.loads(text)
    checked = check_request(line.encode(), replace(REQUEST, endpoint=IMAGES_PATH, model="z-image"))
    assert isinstance(checked, CheckedLine)
    tokens = {"prompt_tokens": checked.input_tokens, "completion_tokens": checked.output_tokens}
    assert body["usage"] == tokens
    [entry] = body["data"]
    image = GeneratedImage.of_file_id(entry["file_id"])
    assert image is not None
    assert entry["uri"] == f"s3://my-platform-batch/{image.key}"


def test_the_states_are_those_of_the_platform() -> None:
    told = {
        state: set(re.findall(r"`(\w+)`", after))
        for states, _, after in rows("## States")
        for state in re.findall(r"`(\w+)`", states)
    }

    assert told == {state: set(TRANSITIONS[state]) for state in STATES}


def test_every_code_of_an_error_is_explained() -> None:
    explained = {code for _, codes, _ in rows("## Errors") for code in re.findall(r"`(\w+)`", codes)}
    used = {code for file in CODE for code in re.findall(r'code="(\w+)"', file.read_text(encoding="utf-8"))}
    used |= {response["body"]["error"]["code"] for response in GATEWAY_RESPONSES.values()} - {None}

    assert used <= explained
    assert explained - used == {"invalid_value", "invalid_json"}


def test_the_sizes_are_those_of_the_platform() -> None:
    assert f"above {MAX_REQUEST_BYTES // 2**20} MiB" in PAGE
    assert f"to {MAX_UPLOAD_BYTES // 2**20} MiB" in PAGE
