"""A task of ECS is protected while it works, by the agent's endpoint."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from batch.worker import worker_loop

ARN = "arn:aws:ecs:us-west-2:123456789012:task/platform/0123"
#: Answers of the agent as its page shows them.
REFUSED = {"failure": {"Arn": ARN, "Detail": None, "Reason": "DEPLOYMENT_BLOCKED"}}
DENIED = {"error": {"Arn": ARN, "Code": "AccessDeniedException", "Message": "not authorized"}}


class Agent:
    """The endpoint, with the answers that it gives before it protects."""

    def __init__(self, *first: dict[str, Any]) -> None:
        self.asked: list[dict[str, Any]] = []
        self._first = list(first)

    async def state(self, request: web.Request) -> web.Response:
        body = await request.json()
        self.asked.append(body)
        if self._first:
            return web.json_response(self._first.pop(0))
        return web.json_response({"protection": {**body, "TaskArn": ARN}})


@asynccontextmanager
async def served(agent: Agent) -> AsyncIterator[str]:
    application = web.Application()
    application.router.add_put("/api/container/task-protection/v1/state", agent.state)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}/api/container"
    await runner.cleanup()


@pytest.fixture(autouse=True)
def without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_loop, "_TASK_PROTECTION_PERIOD_SECONDS", 0)
    monkeypatch.setattr(worker_loop, "_AGAIN_SECONDS", 0)


def protect(agent: Agent, turns: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a worker be busy or idle, one after the other, each until the agent was asked again or is quiet."""

    async def go() -> None:
        working, seen = False, 0

        def is_working() -> bool:
            nonlocal seen
            seen += 1
            return working

        async with served(agent) as address:
            monkeypatch.setenv(worker_loop.AGENT, address)
            keeping = asyncio.create_task(worker_loop.keep_protected(is_working))
            for turn in turns:
                working = turn
                looked = seen
                while seen < looked + 6:
                    await asyncio.sleep(0)
            keeping.cancel()

    asyncio.run(asyncio.wait_for(go(), 60))


def test_it_is_protected_once_while_it_works_and_free_when_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    agent = Agent()
    protect(agent, [False, True, True, False, False, True], monkeypatch)
    assert agent.asked == [
        {"ProtectionEnabled": True, "ExpiresInMinutes": 120},
        {"ProtectionEnabled": False},
        {"ProtectionEnabled": True, "ExpiresInMinutes": 120},
    ]


def test_a_refusal_is_logged_and_asked_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    agent = Agent(REFUSED, DENIED)
    protect(agent, [True], monkeypatch)
    assert [each["ProtectionEnabled"] for each in agent.asked] == [True, True, True]
    said = capsys.readouterr().out
    assert "DEPLOYMENT_BLOCKED" in said
    assert "AccessDeniedException" in said


def test_an_agent_that_does_not_answer_stops_no_work(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def go() -> None:
        monkeypatch.setenv(worker_loop.AGENT, "http://127.0.0.1:9/api")
        keeping = asyncio.create_task(worker_loop.keep_protected(lambda: True))
        said = ""
        while "task_not_protected" not in said:
            await asyncio.sleep(0)
            said += capsys.readouterr().out
        assert not keeping.done()
        keeping.cancel()

    asyncio.run(asyncio.wait_for(go(), 60))
