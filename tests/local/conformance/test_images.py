"""Images, the whole way: real time, a killed server, a batch job, and an image that its team reads."""

from __future__ import annotations

import base64
import json
import subprocess
from collections.abc import Iterator
from typing import Any

import openai
import pytest

from inference_blueprints.resources import root
from inference_local.batch.batch_job import local_token
from inference_local.run_state import live_state
from inference_local.serving.direct.scripted_images import scripted_png
from tests.local.conftest import BLUEPRINTS, Run
from tests.local.test_run import check_down

pytestmark = [pytest.mark.ecs, pytest.mark.timeout(900)]

MODEL = "z-image-turbo"
REQUESTS = 400


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    run = Run(tmp_path_factory.mktemp("up") / "run", "image-generation", "--seconds", "5", "--keep")
    try:
        run.wait_for("Press Ctrl-C to stop")
        yield run
        check_down(run)
    finally:
        run.process.terminate()
        run.process.wait(60)


@pytest.fixture(scope="module")
def report(up: Run) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((up.run_directory / "report.json").read_text())
    return document


def test_the_report_counts_images_and_says_that_no_model_ran(up: Run, report: dict[str, Any]) -> None:
    assert report["images"] == report["requests"] > 0
    assert report["failures"] == 0
    assert report["pricePerMillionTokensUsd"] is None
    [engines] = [part for part in report["parts"] if part["name"] == f"Engines of {MODEL}-main"]
    assert engines["state"] == "stubbed"
    assert "no model runs" in engines["detail"]
    assert "no model runs" in (up.run_directory / "report.html").read_text()


def test_a_killed_server_loses_only_what_it_had(report: dict[str, Any]) -> None:
    [loss] = report["workerLosses"]
    assert (loss["workers"], loss["killed"], loss["moved"]) == (2, 1, 0)
    assert loss["lost"] <= loss["streams"] / loss["workers"]


def test_a_batch_job_has_every_image_once_although_its_worker_is_killed(report: dict[str, Any]) -> None:
    [job] = report["batch"]
    counts = {name: job[name] for name in ("state", "requests", "completed", "failed", "lost", "duplicated")}
    assert counts == {
        "state": "completed",
        "requests": REQUESTS,
        "completed": REQUESTS,
        "failed": 0,
        "lost": 0,
        "duplicated": 0,
    }
    assert job["workersKilled"] > 0
    assert job["images"] == REQUESTS
    # At the blueprint's rates, 64 by 64 pixels are 16 tokens.
    assert job["costUsd"] >= REQUESTS * 16 * 0.4e-6


def test_the_official_client_gets_images_at_once_and_from_a_job(up: Run, report: dict[str, Any]) -> None:
    with openai.OpenAI(base_url=report["endpoint"], api_key="none", max_retries=0) as client:
        made = client.images.generate(
            model=MODEL,
            prompt="a cup",
            size="64x64",
            n=2,
            extra_body={"seed": 3},
        )
        files = [base64.b64decode(each.b64_json or "") for each in made.data or ()]
        assert files == [scripted_png(64, 64, "a cup", 3, number) for number in range(2)]
        with pytest.raises(openai.BadRequestError, match="less than or equal to 10"):
            client.images.generate(model=MODEL, prompt="a cup", n=11)
    state = live_state(up.run_directory)
    assert state is not None
    batch = state.batch
    assert batch is not None
    with openai.OpenAI(base_url=batch.base_url, api_key=lambda: local_token(batch)) as client:
        [job] = client.batches.list().data
        output = client.files.content(job.output_file_id or "").text.splitlines()
        row = json.loads(output[0])
        [image] = row["response"]["body"]["data"]
        content = client.files.content(image["file_id"]).read()
        assert len(content) == image["bytes"]
        assert content.startswith(b"\x89PNG")
        with pytest.raises(openai.NotFoundError):
            client.files.content(f"image-batch_{'0' * 32}-000000-0000-0-000-0-0.png")


def test_verify_asks_for_an_image(up: Run) -> None:
    command = [str(BLUEPRINTS), "verify", "image-generation", "--local"]
    verified = subprocess.run(
        [*command, "--run-directory", str(up.run_directory)],
        cwd=root(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert verified.returncode == 0, verified.stdout + verified.stderr
    assert f"{MODEL}/main: 1 PNG of 1024x1024 in 9 steps" in verified.stdout
