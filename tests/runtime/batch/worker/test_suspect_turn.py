"""One process of all workers of a model runs suspects alone at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from fnmatch import fnmatchcase
from typing import Any

import pytest
from botocore.exceptions import EndpointConnectionError

from batch.worker.suspects import AFTER_LOSS_SECONDS, TURN_SECONDS, SuspectTurn
from inference_contracts.batch_keys import jobs_of_model, suspects_of_model
from tests.runtime.batch import resources
from tests.runtime.batch.worker.turned_loop import turn


def _clock() -> float:
    return asyncio.get_running_loop().time()


@pytest.fixture
def process(aws: dict[str, str]) -> Callable[[str], SuspectTurn]:
    """Return the turn of a process of a worker of a model."""
    client = resources.client("dynamodb")
    return lambda model: SuspectTurn(client, aws["BATCH_PROGRESS_TABLE"], model, _clock)


def test_one_process_of_a_model_has_the_turn(process: Callable[[str], SuspectTurn]) -> None:
    """Red if two have it, if one that died keeps it, or if a repeated call of AWS's SDK loses it."""

    async def go() -> None:
        first, second = process("qwen"), process("qwen")
        assert await first.take()
        assert await first.take()
        assert first.lasts
        assert not await second.take()
        assert not second.lasts
        assert await process("llama").take()
        await asyncio.sleep(TURN_SECONDS)
        assert not first.lasts
        assert await second.take()
        # One that comes late ends nobody else's turn.
        await first.end(lost=False)
        assert not await first.take()
        await second.end(lost=False)
        assert await first.take()

    turn(go())


def test_after_a_loss_the_next_process_waits(process: Callable[[str], SuspectTurn]) -> None:
    """Red if another suspect is sent to the worker that is about to be found dead, and is blamed for it."""

    async def go() -> None:
        first, second = process("qwen"), process("qwen")
        assert await first.take()
        await first.end(lost=True)
        assert not await second.take()
        await asyncio.sleep(AFTER_LOSS_SECONDS)
        assert await second.take()

    turn(go())


def test_suspects_go_on_while_aws_does_not_answer(capsys: pytest.CaptureFixture[str]) -> None:
    """Red if a table that cannot be written stops lines, or if a loss without the turn counts as alone."""

    class Silent:
        def put_item(self, **_: Any) -> None:
            raise EndpointConnectionError(endpoint_url="https://dynamodb")

    async def go() -> None:
        one = SuspectTurn(Silent(), "progress", "qwen", _clock)
        assert await one.take()
        assert not one.lasts
        await one.end(lost=True)

    turn(go())
    assert "turn_unknown" in capsys.readouterr().out


def test_the_permission_for_progress_covers_the_turn_of_its_own_model() -> None:
    """Red if the key of the item needs another permission, or another model's worker may write it."""
    key = suspects_of_model("qwen")
    assert any(fnmatchcase(key, pattern) for pattern in jobs_of_model("qwen"))
    assert not any(fnmatchcase(key, pattern) for pattern in jobs_of_model("llama"))
