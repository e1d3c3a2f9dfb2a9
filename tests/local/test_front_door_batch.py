"""Batch behind a front door: chat, files and batches with one address and key, and the sum of their costs."""

from __future__ import annotations

import io
import json
import os
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import openai
import pytest
import urllib3
import yaml
from openai.types import Batch
from rich.console import Console

from inference_blueprints.loading import load_blueprint
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.spec.source import shipped
from inference_local.local_platform import LocalPlatform
from inference_local.run_state import RunningBatch, RunningDoor
from inference_local.run_steps import Steps
from tests.local.batch_client import PATIENCE_SECONDS, has_ended, line, rows, submit, wait
from tests.local.conftest import BLUEPRINTS

LINES = 40
TOKENS = 5
#: US dollars of a token in and out, and the public name of the model.
RATES = {"usdPerMillionInputTokens": 0.1, "usdPerMillionOutputTokens": 1}
INPUT_USD, OUTPUT_USD = 0.1e-6, 1e-6
PUBLIC = "chat"
OWNER, OTHER = "ads", "shop"


def with_door(file: Path) -> Path:
    """Write the shipped blueprint of batch, where a second team and a front door are added."""
    document = yaml.safe_load(shipped()["batch-g6e"].read_text())
    spec = document["spec"]
    [model] = spec["models"]
    model["rates"] = RATES
    del spec["signalStore"]
    spec["network"] = yaml.safe_load(shipped()["front-door"].read_text())["spec"]["network"]
    role = "arn:aws:iam::123456789012:role/Shop"
    spec["teams"].append({"name": OTHER, "principals": [role], "monthlyBudgetUsd": 10})
    spec["frontDoor"] = {"models": [{"name": PUBLIC, "to": [{"model": model["name"]}]}]}
    file.write_text(yaml.safe_dump(document))
    return file


@dataclass(frozen=True)
class Up:
    """A platform that runs, and what a team needs of it."""

    file: Path
    door: RunningDoor
    batch: RunningBatch
    environment: Mapping[str, str]

    def client(self, team: str) -> openai.OpenAI:
        return openai.OpenAI(base_url=self.door.base_url, api_key=self.door.keys[team], max_retries=0)

    def usage(self) -> dict[str, dict[str, Any]]:
        """Return what `blueprints usage` shows of each model."""
        command = [
            *(str(BLUEPRINTS), "usage", str(self.file)),
            *("--by", "team", "--by", "model", "--output", "json"),
        ]
        shown = subprocess.run(
            command, env={**os.environ, **self.environment}, capture_output=True, text=True, check=False
        )
        assert shown.returncode == 0, shown.stderr
        return {each["model"]: each for each in json.loads(shown.stdout)["rows"]}

    def costs(self) -> dict[str, Any]:
        """Return what the batch API says of the month of the team, asked with its key."""
        headers = {"Authorization": f"Bearer {self.door.keys[OWNER]}"}
        answer = urllib3.request("GET", f"{self.batch.base_url}/costs", headers=headers)
        assert answer.status == 200, answer.data
        found: dict[str, Any] = answer.json()
        return found


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    file = with_door(tmp_path_factory.mktemp("blueprint") / "door-and-batch.yaml")
    loaded = load_blueprint(str(file))
    with LocalPlatform(loaded, build_plan(loaded.blueprint), tmp_path_factory.mktemp("run")) as platform:
        deployed = platform.start(Steps(Console(file=io.StringIO()), platform.step_titles))
        assert deployed.door
        assert deployed.batch
        yield Up(file, deployed.door, deployed.batch, deployed.environment)
        platform.check()  # whatever the tests asked, every process still runs


@dataclass(frozen=True)
class Asked:
    """One chat and one job of the same team, at the same address, with the same key."""

    chat_usd: float
    job: Batch
    answers: list[dict[str, Any]]

    @property
    def job_usd(self) -> float:
        usages = [each["response"]["body"]["usage"] for each in self.answers]
        return sum(cost(each["prompt_tokens"], each["completion_tokens"]) for each in usages)


def cost(tokens_in: int, tokens_out: int) -> float:
    return tokens_in * INPUT_USD + tokens_out * OUTPUT_USD


@pytest.fixture(scope="module")
def asked(up: Up) -> Asked:
    with up.client(OWNER) as client:
        message: Any = {"role": "user", "content": "Hello"}
        usage = client.chat.completions.create(model=PUBLIC, messages=[message], max_tokens=TOKENS).usage
        assert usage
        job = submit(client, [line(f"line-{each}", tokens=TOKENS) for each in range(LINES)])
        job = wait(client, job, has_ended)
        answers = rows(client, job.output_file_id)
    return Asked(cost(usage.prompt_tokens, usage.completion_tokens), job, answers)


def test_a_job_is_submitted_and_answered_through_the_door(asked: Asked) -> None:
    assert asked.job.status == "completed", asked.job
    assert Counter(each["custom_id"] for each in asked.answers) == Counter(
        f"line-{each}" for each in range(LINES)
    )
    assert {each["response"]["status_code"] for each in asked.answers} == {200}
    assert asked.job.to_dict()["cost_usd"] == pytest.approx(asked.job_usd)


def test_the_door_has_charged_each_line_beside_the_requests_of_the_team(up: Up, asked: Asked) -> None:
    """Red if a line passes the door by, is charged twice, or costs something else than the job says."""
    until(lambda: sum(each["requests"] for each in up.usage().values()) >= LINES + 1)
    usage = up.usage()
    [of_batch] = usage.keys() - {PUBLIC}
    assert of_batch.startswith("batch:")
    assert {name: each["requests"] for name, each in usage.items()} == {PUBLIC: 1, of_batch: LINES}
    assert {each["team"] for each in usage.values()} <= {OWNER}
    assert usage[PUBLIC]["usd"] == pytest.approx(asked.chat_usd)
    assert usage[of_batch]["usd"] == pytest.approx(asked.job_usd)


def test_the_ledger_has_the_sum_and_batch_shows_it(up: Up, asked: Asked) -> None:
    until(lambda: up.costs()["door_usd"] == pytest.approx(asked.chat_usd + asked.job_usd))
    costs = up.costs()
    assert costs["spent_usd"] == pytest.approx(asked.job_usd)
    assert costs["left_usd"] == pytest.approx(1000 - asked.chat_usd - asked.job_usd)


def test_another_team_sees_nothing_of_the_job(up: Up, asked: Asked) -> None:
    with up.client(OTHER) as client:
        assert client.batches.list().data == []
        with pytest.raises(openai.NotFoundError):
            client.batches.retrieve(asked.job.id)


def test_a_wrong_key_is_refused_at_the_batch_api(up: Up) -> None:
    with (
        openai.OpenAI(base_url=up.door.base_url, api_key="ibk-none", max_retries=0) as nobody,
        pytest.raises(openai.AuthenticationError),
    ):
        nobody.batches.list()


def until(happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.3)
