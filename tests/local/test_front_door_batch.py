"""Batch behind a front door: chat, files and batches with one address and key, and the sum of their costs."""

from __future__ import annotations

import io
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import openai
import pytest
import urllib3
from openai.types import Batch
from rich.console import Console

from inference_blueprints.loading import load_blueprint
from inference_blueprints.serving.plan import build_plan
from inference_local.local_platform import LocalPlatform
from inference_local.run_state import RunningBatch, RunningDoor
from inference_local.run_steps import Steps
from tests.local.batch_client import PATIENCE_SECONDS, has_ended, line, rows, submit, wait
from tests.local.door_blueprints import PUBLIC, behind_a_door, cost, usage

LINES = 40
TOKENS = 5
OWNER, OTHER = "ads", "shop"


def with_another_team(spec: dict[str, Any]) -> None:
    """Without signals, which jobs of this file do not write."""
    del spec["signalStore"]
    role = "arn:aws:iam::123456789012:role/Shop"
    spec["teams"].append({"name": OTHER, "principals": [role], "monthlyBudgetUsd": 10})


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
        return usage(self.file, self.environment)

    def costs(self) -> dict[str, Any]:
        """Return what the batch API says of the month of the team, asked with its key."""
        headers = {"Authorization": f"Bearer {self.door.keys[OWNER]}"}
        answer = urllib3.request("GET", f"{self.batch.base_url}/costs", headers=headers)
        assert answer.status == 200, answer.data
        found: dict[str, Any] = answer.json()
        return found


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    folder = tmp_path_factory.mktemp("blueprint")
    file = behind_a_door("batch-g6e", folder / "door-and-batch.yaml", with_another_team)
    loaded = load_blueprint(str(file))
    with LocalPlatform(loaded, build_plan(loaded.blueprint), tmp_path_factory.mktemp("run")) as platform:
        deployed = platform.start(Steps(Console(file=io.StringIO()), platform.scope.step_titles))
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


@pytest.fixture(scope="module")
def asked(up: Up) -> Asked:
    with up.client(OWNER) as client:
        message: Any = {"role": "user", "content": "Hello"}
        chat = client.chat.completions.create(model=PUBLIC, messages=[message], max_tokens=TOKENS).usage
        assert chat
        job = submit(client, [line(f"line-{each}", tokens=TOKENS) for each in range(LINES)])
        job = wait(client, job, has_ended)
        answers = rows(client, job.output_file_id)
    return Asked(cost(chat.prompt_tokens, chat.completion_tokens), job, answers)


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
    found = up.usage()
    [of_batch] = found.keys() - {PUBLIC}
    assert of_batch.startswith("batch:")
    assert {name: each["requests"] for name, each in found.items()} == {PUBLIC: 1, of_batch: LINES}
    assert {each["team"] for each in found.values()} <= {OWNER}
    assert found[PUBLIC]["usd"] == pytest.approx(asked.chat_usd)
    assert found[of_batch]["usd"] == pytest.approx(asked.job_usd)


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
