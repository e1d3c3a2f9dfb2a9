"""Java clients at a real front door: API keys, tokens that expire, and refusals."""

from __future__ import annotations

import json
import subprocess

from inference_contracts.door_configuration import DoorBudget
from tests.java.conftest import java_command
from tests.runtime.front_door.clients.conftest import AUDIENCE, TEAMS, RunningDoor
from tests.runtime.front_door.clients.conftest import door as door  # noqa: PLC0414 - a fixture
from tests.runtime.front_door.clients.stand_in_model import WORDS
from tests.runtime.front_door.conftest import emulator as emulator  # noqa: PLC0414 - a fixture

TEXT = "".join(WORDS)


def test_keys_tokens_and_refusals(door: RunningDoor) -> None:
    poor = door.made_key(budget=DoorBudget("key", "", nano_per_day=150_000))
    principal = TEAMS[0].principals[0]
    tokens = [door.signer.token(principal, AUDIENCE, seconds=300) for _ in range(2)]
    address = door.door.base_url
    words = [address, "public/model", door.made_key(), poor, *tokens]
    command = java_command("endpoint-client", "inferenceblueprints.endpoint.DoorProbe", *words)
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert ran.returncode == 0, ran.stderr
    seen = json.loads(ran.stdout)
    answers = ("answer", "streamed", "parts", "withToken", "withNextToken")
    assert {name: seen[name] for name in answers} == dict.fromkeys(answers, TEXT)
    assert seen["wrongKey"].startswith("REFUSED 401")
    assert "The API key is not valid" in seen["wrongKey"]
    assert seen["unknownModel"].startswith("REFUSED 404")
    assert "GET /v1/models" in seen["unknownModel"]
    assert seen["poor"].startswith("UNAVAILABLE 429")


def test_the_official_java_client(door: RunningDoor) -> None:
    poor = door.made_key(budget=DoorBudget("key", "", nano_per_day=150_000))
    token = door.signer.token(TEAMS[0].principals[0], AUDIENCE)
    words = [door.door.base_url, "public/model", door.made_key(), poor, token]
    command = java_command("endpoint-client", "inferenceblueprints.endpoint.OfficialDoorProbe", *words)
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout) == {
        **dict.fromkeys(("answer", "parts", "withToken"), TEXT),
        "wrongKey": "UnauthorizedException 401 invalid_api_key",
        "unknownModel": "NotFoundException 404 model_not_found",
        "poor": "RateLimitException 429 insufficient_quota",
    }
