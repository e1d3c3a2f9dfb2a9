"""The Java client at Dynamo's real frontend. A simulated engine answers with the request that it gets."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from inference_contracts.request_filter import ALLOWED_VARIABLE
from inference_contracts.request_headers import BATCH_HEADERS
from tests.java.conftest import java_command
from tests.local.serving.answers.answer_families import FAMILIES
from tests.local.serving.answers.answering import answering
from tests.local.serving.answers.scripted_models import ECHO, echoing


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    family = FAMILIES["llama3"]
    # As for a model that batch shares: the filter removes priorities otherwise.
    allowed = {ALLOWED_VARIABLE: ",".join(BATCH_HEADERS)}
    with answering([echoing(family, tmp_path / ECHO)], family, tmp_path, allowed) as base_url:
        yield base_url


def test_every_kind_of_call_is_answered(address: str) -> None:
    command = java_command("endpoint-client", "inferenceblueprints.endpoint.Probe", address, ECHO)
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=200)
    assert ran.returncode == 0, ran.stderr
    answers = json.loads(ran.stdout)
    names = ("interactive", "batch", "session", "stream", "decisionText", "completion")
    interactive, batch, session, streamed, decision, completion = (
        json.loads(answers[name]) for name in names
    )
    assert 0 < len(completion["token_ids"]) < len(interactive["token_ids"]), (
        "a text without the marks of a chat"
    )
    assert interactive["token_ids"] == batch["token_ids"] == session["token_ids"] == streamed["token_ids"]
    # The router understood the headers of the shared file.
    assert batch["routing"]["priority"] == -1
    assert not (interactive.get("routing") or {}).get("priority")
    # The engine is asked for the record's schema; it answers with something else.
    assert '"explanation"' in json.dumps(decision["sampling_options"]).replace("\\", "")
    assert (answers["decision"], answers["fallback"]) == ("grey", True)
    assert answers["parts"] >= 1
    assert answers["streamUsage"] > 1
    assert answers["promptTokens"] == len(interactive["token_ids"])
    assert answers["refused"] == "REFUSED 404"


def test_a_session_stays_with_its_worker(tmp_path: Path) -> None:
    """Dynamo's KV router, two workers that answer A and B, and sessions beside other calls."""
    family = FAMILIES["llama3"]
    entry = echoing(family, tmp_path / ECHO)
    workers = [
        [{**entry, "first_byte": None, "tokens": [entry["first_byte"] + ord(name)]}] for name in ("A", "B")
    ]
    # The scripted workers have no cache whose events a router could follow. By its temperature, the router
    # chooses at random among workers that are equally good.
    router = (
        "--router-mode",
        "kv",
        "--no-router-kv-events",
        "--router-temperature",
        "1",
        "--router-session-affinity-ttl-secs",
        "600",
    )
    with answering(workers[0], family, tmp_path, {}, workers[1], arguments=router) as address:
        command = java_command("endpoint-client", "inferenceblueprints.endpoint.SessionProbe", address, ECHO)
        ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=200)
        assert ran.returncode == 0, ran.stderr
    answers = json.loads(ran.stdout)
    assert len(answers.pop("session-0")) == 5
    assert len(answers) == 15
    for session, texts in answers.items():
        assert len(set(texts)) == 1, f"{session} was moved: {texts}"
    assert {text for texts in answers.values() for text in texts} == {"A", "B"}, "both workers have sessions"
