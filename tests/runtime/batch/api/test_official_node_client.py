"""The official Node.js client, as it comes, against the API."""

from __future__ import annotations

import json
import os
import subprocess
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest

from inference_blueprints import tools
from inference_blueprints.resources import root
from tests.runtime.batch import resources
from tests.runtime.batch.api.gateway import Gateway

SCRIPT = Path(__file__).with_name("official_node_client.mjs")
REFUSED = {"error": {"message": "slow down", "type": "rate_limit_error", "param": None, "code": "busy"}}


class Trouble:
    """Loses the answer of one request, and is busy three times of those who ask for `busy`."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._function = gateway.function
        self._busy = 3
        self.has_lost = False

    def answer(self, event: dict[str, Any], context: Any) -> dict[str, Any]:
        if event["path"] == "/v1/batches/busy":
            self._busy -= 1
            status = HTTPStatus.TOO_MANY_REQUESTS if self._busy >= 0 else HTTPStatus.OK
            return {"statusCode": status, "body": json.dumps(REFUSED), "headers": {"retry-after-ms": "1"}}
        if event["body"] and '"2h"' in event["body"] and not self.has_lost:
            self.has_lost = True
            self._gateway.lose_answers = 1
        return self._function(event, context)


@pytest.fixture
def seen(gateway: Gateway, tmp_path: Path) -> dict[str, Any]:
    """What a program with the client saw."""
    trouble = Trouble(gateway)
    gateway.function = trouble.answer
    tokens = [gateway.token(each) for each in (resources.SEARCH, resources.NOBODY)]
    ran = subprocess.run(
        [str(tools.node()), str(SCRIPT), f"{gateway.address}/v1", *tokens, str(tmp_path)],
        cwd=root(),
        env={"PATH": os.defpath, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert trouble.has_lost
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


def refusal(kind: str, status: int, code: str | None, param: str | None = None) -> dict[str, Any]:
    return {"kind": kind, "status": status, "code": code, "param": param}


def test_the_client_sees_what_it_expects(seen: dict[str, Any]) -> None:
    content = seen.pop("content")
    assert json.loads(content)["custom_id"] == "a"
    assert seen.pop("file") == {"filename": "requests.jsonl", "bytes": len(content), "purpose": "batch"}
    assert seen.pop("deleted") | {"id": ""} == {"id": "", "object": "file", "deleted": True}
    refusals = seen.pop("refusals")
    assert seen == {
        "lifetime": 7200,
        "same": True,
        "listed": ["first", "second"],
        "gone": refusal("NotFoundError", 404, "not_found", "id"),
        "upload": {"status": "completed", "bytes": 4 * 2**20 + 10},
        "status": "validating",
        "metadata": {"run": "nightly"},
        "order": [2, 1, 0],
        "cancelled": "cancelling",
        "once": True,
        "made": 1,
        "busy": refusal("RateLimitError", 429, "busy"),
        "patience": 200,
    }
    assert refusals == {
        "file": refusal("BadRequestError", 400, "file_not_found", "input_file_id"),
        "window": refusal("BadRequestError", 400, "invalid_value", "completion_window"),
        "batch": refusal("NotFoundError", 404, "not_found", "id"),
        "cursor": refusal("NotFoundError", 404, "not_found", "id"),
        "key": refusal("AuthenticationError", 401, "invalid_api_key"),
        "team": refusal("PermissionDeniedError", 403, "no_team"),
        "reused": refusal("UnprocessableEntityError", 422, "idempotency_key_reused"),
        "large": refusal("APIError", 413, "request_too_large"),
    }
