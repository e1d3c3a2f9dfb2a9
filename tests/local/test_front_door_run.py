"""The run of front-door: real Envoys and policies, an official client, a killed replica, and what it cost."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import jsonschema
import openai
import pytest

from inference_blueprints.resources import root
from tests.local.conftest import BLUEPRINTS, PATIENCE_SECONDS, Run
from tests.unit.local.report.schema import SCHEMA


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    run = Run(tmp_path_factory.mktemp("door") / "run", "front-door", "--seconds", "1", "--keep")
    try:
        run.wait_for("front door answers")
        run.wait_for("Press Ctrl-C to stop")
        yield run
        run.process.terminate()
        run.wait_for_end()
        assert run.processes_left() == []
    finally:
        run.process.terminate()
        run.process.wait(60)


@pytest.fixture(scope="module")
def report(up: Run) -> Any:
    document = json.loads((up.run_directory / "report.json").read_text())
    jsonschema.validate(document, SCHEMA)
    return document


@pytest.fixture(scope="module")
def door(report: Any) -> Any:
    return report["frontDoor"]


def test_nothing_failed_and_a_replica_was_killed(door: Any) -> None:
    assert (door["failures"], door["failureReasons"], door["killedReplicas"]) == (0, {}, 1)
    assert door["requests"] > 150


def test_the_budget_refuses_and_nothing_is_spent_beyond_it(door: Any) -> None:
    """Spent is what the models' own frontends have counted, and not what the ledger says."""
    assert door["refusals"]["insufficient_quota"] > 0
    assert door["overspendUsd"] == 0
    assert 0 < door["spentUsd"] <= door["ledgerUsd"] <= door["limitUsd"]
    assert door["ledgerUsd"] > 0.9 * door["limitUsd"]


def test_the_records_have_every_token_that_the_models_counted(door: Any) -> None:
    assert door["recordedUsd"] == pytest.approx(door["countedUsd"], rel=0.01)


def test_cut_streams_are_charged_to_the_chunk(door: Any) -> None:
    assert door["cutStreamsCharged"] == door["cutStreams"] > 0
    assert abs(door["cutTokensCharged"] - door["cutTokensCounted"]) <= door["cutStreams"]


def test_conversations_stay_and_some_are_at_the_canary(door: Any) -> None:
    canary = door["canary"]
    assert canary["moved"] == 0
    assert sum(canary["byTarget"].values()) == canary["conversations"]
    assert set(canary["byTarget"]) == {"qwen3-8b-stable", "qwen3-8b-canary"}


def test_the_least_urgent_requests_wait_while_a_model_is_full(door: Any) -> None:
    shed = door["shed"]
    assert shed["urgentRefused"] == 0 < shed["lowRefused"]
    assert shed["lowRetried"] == shed["lowRefused"]


def test_no_fault_is_in_the_terminal_or_on_the_page(up: Run, door: Any) -> None:
    page = (up.run_directory / "report.html").read_text()
    assert 'id="front-door"' in page
    assert f"{door['requests']} requests, 0 failures" in page
    assert "Not as it should be" not in up.output + page


def test_each_part_says_how_real_it_is(report: Any) -> None:
    states = {part["name"]: part["state"] for part in report["parts"]}
    assert states["Front door"] == "real"
    assert states["Ledger of the front door"] == "stand-in"
    assert states["Walls around the models"] == "stubbed"
    settings = {each["setting"] for each in report["replacements"]}
    assert settings == {"usdPerDay", "requests at once"}


def test_the_printed_command_asks_the_door_with_a_key(up: Run) -> None:
    [curl] = [line for line in up.output.splitlines() if line.startswith("curl ")]
    words = shlex.split(curl)
    headers = [words[number + 1].split(": ") for number, word in enumerate(words) if word == "-H"]
    body = words[words.index("-d") + 1].encode()
    request = urllib.request.Request(words[2], body, dict(headers))  # noqa: S310 - loopback
    with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310
        assert json.load(answer)["choices"][0]["message"]["content"]
    assert "still up" in up.output


@pytest.fixture(scope="module")
def variables(up: Run) -> dict[str, str]:
    document = blueprints("local", "env", "--output", "json", "--run-directory", str(up.run_directory))
    found: dict[str, str] = json.loads(document)
    return found


def blueprints(*arguments: str, variables: Mapping[str, str] = os.environ) -> str:
    """Run a command, and return what it prints."""
    command = [str(BLUEPRINTS), *arguments]
    environment = {**os.environ, **variables}
    done = subprocess.run(command, cwd=root(), env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_variables_are_those_of_the_door(variables: dict[str, str]) -> None:
    with openai.OpenAI(
        base_url=variables["OPENAI_BASE_URL"], api_key=variables["OPENAI_API_KEY"], max_retries=0
    ) as client:
        names = {model.id for model in client.models.list()}
    assert "qwen/qwen3-8b" in names
    with (
        openai.OpenAI(base_url=variables["OPENAI_BASE_URL"], api_key="none", max_retries=0) as nobody,
        pytest.raises(openai.AuthenticationError),
    ):
        nobody.models.list()


def test_keys_are_made_and_revoked_here_as_in_an_account(variables: dict[str, str]) -> None:
    """Red if the command and the replicas do not mean the same table: a revoked key would stay valid."""
    words = ("front-door", "--output", "json")
    made = json.loads(
        blueprints("keys", "create", *words, "--team", "support", "--name", "test", variables=variables)
    )
    with openai.OpenAI(
        base_url=variables["OPENAI_BASE_URL"], api_key=made["secret"], max_retries=0
    ) as client:
        until(lambda: is_admitted(client))
        blueprints("keys", "revoke", words[0], made["id"], variables=variables)
        until(lambda: not is_admitted(client))


def test_the_usage_is_what_the_report_has(variables: dict[str, str], door: Any) -> None:
    usage = json.loads(blueprints("usage", "front-door", "--output", "json", variables=variables))
    shop = next(row for row in usage["rows"] if row["team"] == "shop")
    assert shop["cut"] >= door["cutStreams"] > 0
    assert shop["usd"] == pytest.approx(door["recordedUsd"], rel=0.01)  # and a request of another test


def is_admitted(client: openai.OpenAI) -> bool:
    try:
        client.models.list()
    except openai.AuthenticationError:
        return False
    return True


def until(happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_a_part_of_the_door_that_dies_is_started_again(up: Run) -> None:
    up.find("door-1/bootstrap.json").kill()
    up.wait_for("Envoy of door-1 was killed by signal 9; started it again")
